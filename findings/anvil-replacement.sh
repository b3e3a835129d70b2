#!/usr/bin/env bash
# Guess: a development chain takes a replacement of a waiting transaction only where its fees are higher by a tenth, as
#   geth's pool does.
# Seen: anvil 1.7.1 takes one that pays a single wei more for its gas.
# Why it matters: code that raises fees by too little passes all its tests, and is stuck on the chain with "replacement
#   transaction underpriced".
. "$(dirname "$0")/lib.sh"
npm_packages @foundry-rs/anvil@1.7.1
start_anvil --no-mining

cat >replace.mjs <<'E'
const rpc = async (method, ...params) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  return (await (await fetch(process.env.ANVIL, { method: "POST", headers, body })).json()).result;
};
const [from, to] = await rpc("eth_accounts");
const send = (fee) =>
  rpc("eth_sendTransaction", { from, to, nonce: "0x0", gas: "0x5208", maxFeePerGas: fee, maxPriorityFeePerGas: "0x1" });
const first = await send("0x2540be400");
const second = await send("0x2540be401");
await rpc("evm_mine");
console.log("second mined:", (await rpc("eth_getTransactionReceipt", second)) !== null);
console.log("first mined:", (await rpc("eth_getTransactionReceipt", first)) !== null);
E
expect node replace.mjs <<'E'
second mined: true
first mined: false
E
