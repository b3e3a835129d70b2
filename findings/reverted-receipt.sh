#!/usr/bin/env bash
# Guess: waiting for the receipt of a transaction that reverted raises an error in each client library, or in none.
# Seen: `wait` of ethers 6.17.0 throws; `waitForTransactionReceipt` of viem 2.57.20 returns, with the status "reverted".
# Why it matters: code that is moved from ethers takes a reverted transaction for one that worked. Look at the status.
. "$(dirname "$0")/lib.sh"
npm_packages ethers@6.17.0 viem@2.57.20 @foundry-rs/anvil@1.7.1
start_anvil

cat >wait.mjs <<'E'
import { JsonRpcProvider } from "ethers";
import { createPublicClient, http } from "viem";

const provider = new JsonRpcProvider(process.env.ANVIL, 31337, { cacheTimeout: -1, pollingInterval: 100 });
const signer = await provider.getSigner(0);
// The contract's whole code is PUSH1 0, PUSH1 0, REVERT.
const deployed = await (await signer.sendTransaction({ data: "0x6460006000fd6000526005601bf3" })).wait();
const sent = await signer.sendTransaction({ to: deployed.contractAddress, gasLimit: 100000 });
console.log("ethers", await sent.wait().catch((error) => error.code));
const viem = createPublicClient({ transport: http(process.env.ANVIL) });
console.log("viem", (await viem.waitForTransactionReceipt({ hash: sent.hash })).status);
process.exit();
E
expect node wait.mjs <<'E'
ethers CALL_EXCEPTION
viem reverted
E
