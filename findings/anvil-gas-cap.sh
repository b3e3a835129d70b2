#!/usr/bin/env bash
# Guess: `anvil --hardfork osaka` refuses what Osaka refuses: a transaction with more than 2^24 gas (EIP-7825).
# Seen: anvil 1.7.1 mines one with 20,000,000, unless it is started with `--enable-tx-gas-limit`.
# Why it matters: deployments and payloads that no Ethereum node takes since Osaka pass every test.
. "$(dirname "$0")/lib.sh"
npm_packages @foundry-rs/anvil@1.7.1

cat >send.mjs <<'E'
const rpc = async (method, ...params) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  return (await fetch(process.env.ANVIL, { method: "POST", headers, body })).json();
};
const [from, to] = (await rpc("eth_accounts")).result;
const answer = await rpc("eth_sendTransaction", { from, to, gas: "0x1312d00" });
console.log(process.argv[2], answer.error ? "refused" : "taken");
E
cat >both.sh <<'E'
ANVIL=$plain node send.mjs "--hardfork osaka"
ANVIL=$limited node send.mjs "--enable-tx-gas-limit"
E
start_anvil --hardfork osaka
export plain=$ANVIL
start_anvil --hardfork osaka --enable-tx-gas-limit
export limited=$ANVIL
expect bash both.sh <<'E'
--hardfork osaka taken
--enable-tx-gas-limit refused
E
