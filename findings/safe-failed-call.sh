#!/usr/bin/env bash
# Guess: a transaction of a Safe whose call fails reverts as a whole, and its nonce can be used again.
# Seen: in Safe 1.4.1 that is so where `safeTxGas` and `gasPrice` are 0. With a `safeTxGas` of 1 the transaction has status
#   1, emits ExecutionFailure, uses the nonce, and nothing of the call happened.
# Why it matters: a council that looks at the status believes that it acted, and the signatures are spent. Look for
#   ExecutionSuccess with the Safe's hash.
. "$(dirname "$0")/lib.sh"
npm_packages @safe-global/safe-contracts@1.4.1 ethers@6.17.0 @foundry-rs/anvil@1.7.1
start_anvil
safe_module

cat >safe.mjs <<'E'
import { ZeroAddress, zeroPadValue } from "ethers";
import { owner, safe } from "./deployed.mjs";

// The contract's whole code is PUSH1 0, PUSH1 0, REVERT.
const reverts = await (await owner.sendTransaction({ data: "0x6460006000fd6000526005601bf3" })).wait();
// The owner sends it, and so needs no signature: its address, 0, and a V of 1.
const signature = zeroPadValue(owner.address, 32) + "00".repeat(32) + "01";
for (const safeTxGas of [0, 1]) {
  const call = [reverts.contractAddress, 0, "0x", 0, safeTxGas, 0, 0, ZeroAddress, ZeroAddress, signature];
  const receipt = await safe
    .execTransaction(...call, { gasLimit: 500000 })
    .then((sent) => sent.wait())
    .catch((error) => error.receipt);
  const events = receipt.logs.map((log) => safe.interface.parseLog(log).name);
  console.log("safeTxGas", safeTxGas, "status", receipt.status, events.join(), "nonce", Number(await safe.nonce()));
}
process.exit();
E
expect node safe.mjs <<'E'
safeTxGas 0 status 0  nonce 0
safeTxGas 1 status 1 ExecutionFailure nonce 1
E
