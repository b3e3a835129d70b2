#!/usr/bin/env bash
# Guess: `approveHash` of a Safe can be taken back before the execution, and is used up by it.
# Seen: Safe 1.4.1 has no function to take an approval back; `approvedHashes` of a transaction that was executed is 1 as
#   before. Only another transaction with the same nonce makes it void.
# Why it matters: an owner who approved by mistake is not asked again, and "approved" in a list of owners does not tell
#   what waits from what is done. Compare the nonce, and say both before an owner approves.
. "$(dirname "$0")/lib.sh"
npm_packages @safe-global/safe-contracts@1.4.1 ethers@6.17.0 @foundry-rs/anvil@1.7.1
start_anvil
safe_module

cat >safe.mjs <<'E'
import { ZeroAddress, zeroPadValue } from "ethers";
import { owner, safe, sender } from "./deployed.mjs";

const call = [sender.address, 0, "0x", 0, 0, 0, 0, ZeroAddress, ZeroAddress];
const hash = await safe.getTransactionHash(...call, 0);
await (await safe.approveHash(hash)).wait();
const signature = zeroPadValue(owner.address, 32) + "00".repeat(32) + "01";
const receipt = await (await safe.connect(sender).execTransaction(...call, signature)).wait();
console.log("executed:", receipt.logs.map((log) => safe.interface.parseLog(log).name).join());
console.log("nonce", Number(await safe.nonce()), "approved", Number(await safe.approvedHashes(owner.address, hash)));
const changing = safe.interface.fragments.filter((part) => part.type === "function" && !part.constant);
console.log("functions on approvals:", changing.map((part) => part.name).filter((name) => /approv|hash/i.test(name)).join());
process.exit();
E
expect node safe.mjs <<'E'
executed: ExecutionSuccess
nonce 1 approved 1
functions on approvals: approveHash
E
