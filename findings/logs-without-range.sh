#!/usr/bin/env bash
# Guess: "all logs of this event" without a range gives the same in ethers and in viem.
# Seen: `queryFilter` of ethers 6.17.0 reads from block 0; `getContractEvents` of viem 2.57.20 leaves the range to the
#   endpoint, whose own is the newest block alone (seen with anvil 1.7.1; the specification has "latest", too).
# Why it matters: a port from one to the other reads one block, finds nothing, and raises nothing. Always name both ends.
. "$(dirname "$0")/lib.sh"
npm_packages ethers@6.17.0 viem@2.57.20 @foundry-rs/anvil@1.7.1
start_anvil

cat >logs.mjs <<'E'
import { Contract, ContractFactory, JsonRpcProvider, id } from "ethers";
import { createPublicClient, http, parseAbi } from "viem";

const provider = new JsonRpcProvider(process.env.ANVIL, 31337, { cacheTimeout: -1 });
const signer = await provider.getSigner(0);
// A contract that logs Ping() whenever it is called: PUSH32 topic, PUSH1 0, PUSH1 0, LOG1, STOP.
const code = "0x602780600b6000396000f37f" + id("Ping()").slice(2) + "60006000a100";
const deployed = await new ContractFactory([], code, signer).deploy();
const address = await deployed.getAddress();
await (await signer.sendTransaction({ to: address, gasLimit: 100000 })).wait();
await provider.send("evm_mine", []);
console.log("ethers", (await new Contract(address, ["event Ping()"], provider).queryFilter("Ping")).length);
const viem = createPublicClient({ transport: http(process.env.ANVIL) });
const question = { address, abi: parseAbi(["event Ping()"]), eventName: "Ping" };
const [newest, all] = [await viem.getContractEvents(question), await viem.getContractEvents({ ...question, fromBlock: 0n })];
console.log("viem", newest.length, "from block 0:", all.length);
process.exit();
E
expect node logs.mjs <<'E'
ethers 1
viem 0 from block 0: 1
E
