#!/usr/bin/env bash
# Guess: an error of `eth_sendRawTransaction` means that the transaction is neither in the pool nor in a block.
# Seen: hardhat 2.26.3 answers "Transaction reverted …" to a transaction that it has mined: there is a receipt with status
#   0, and the nonce is used. anvil 1.7.1 answers its hash, as geth does.
# Why it matters: code that sends the same wish again under the same nonce gets "nonce too low" for ever. After an error,
#   look for receipt and nonce before you decide.
. "$(dirname "$0")/lib.sh"
npm_packages hardhat@2.26.3 ethers@6.17.0 @foundry-rs/anvil@1.7.1
start_anvil

echo 'module.exports = { solidity: "0.8.28" };' >hardhat.config.cjs
cat >send.cjs <<'E'
const { JsonRpcProvider, Wallet } = require("ethers");
const hardhat = require("hardhat");

const anvil = new JsonRpcProvider(process.env.ANVIL, 31337);
const chains = {
  anvil: (method, params) => anvil.send(method, params),
  hardhat: (method, params) => hardhat.network.provider.request({ method, params }),
};
const main = async () => {
  const wallet = new Wallet("0x" + "07".repeat(32));
  for (const [name, request] of Object.entries(chains)) {
    const [from] = await request("eth_accounts", []);
    await request("eth_sendTransaction", [{ from, to: wallet.address, value: "0xde0b6b3a7640000" }]);
    // The contract's whole code is PUSH1 0, PUSH1 0, REVERT.
    const hash = await request("eth_sendTransaction", [{ from, gas: "0x30000", data: "0x6460006000fd6000526005601bf3" }]);
    let deployed = null;
    while (deployed === null) deployed = await request("eth_getTransactionReceipt", [hash]);
    const fees = { gasLimit: 100000, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1 };
    const signed = await wallet.signTransaction({ ...fees, to: deployed.contractAddress, nonce: 0, chainId: 31337, type: 2 });
    const answer = await request("eth_sendRawTransaction", [signed]).then(
      () => "a hash",
      () => "an error",
    );
    let nonce = "0x0";
    while (nonce === "0x0") nonce = await request("eth_getTransactionCount", [wallet.address, "latest"]);
    const block = await request("eth_getBlockByNumber", ["latest", true]);
    const receipt = await request("eth_getTransactionReceipt", [block.transactions[0].hash]);
    console.log(name, "answers", answer, "status", receipt.status, "nonce", nonce);
  }
};
main().then(() => process.exit());
E
export HARDHAT_CONFIG=hardhat.config.cjs HARDHAT_DISABLE_TELEMETRY_PROMPT=true
expect node send.cjs <<'E'
anvil answers a hash status 0x0 nonce 0x1
hardhat answers an error status 0x0 nonce 0x1
E
