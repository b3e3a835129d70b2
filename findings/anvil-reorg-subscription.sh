#!/usr/bin/env bash
# Guess: after `anvil_reorg` a subscription to logs brings the logs that are gone again, with `removed: true`, as geth's does.
# Seen: anvil 1.7.1 announces the new head, and sends nothing for the log that was taken back; `eth_getLogs` no longer has it.
# Why it matters: code that undoes by `removed` is never run in a test on anvil, and looks right. Compare parent hashes, or
#   have a proxy send what geth would.
. "$(dirname "$0")/lib.sh"
npm_packages @foundry-rs/anvil@1.7.1 ws@8.18.3
start_anvil

cat >reorg.mjs <<'E'
import { once } from "node:events";
import WebSocket from "ws";

const socket = new WebSocket(process.env.ANVIL.replace("http", "ws"));
const answers = new Map();
const seen = [];
let last = 0;
const names = {};
socket.on("message", (data) => {
  const { id, result, params } = JSON.parse(data);
  if (id) answers.get(id)(result);
  else seen.push([names[params.subscription], Number(params.result.blockNumber ?? params.result.number), params.result.removed]);
});
const rpc = (method, ...params) =>
  new Promise((done) => {
    answers.set((last += 1), done);
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }));
  });
const until = async (condition) => {
  while (!(await condition())) await new Promise((done) => setTimeout(done, 50));
};
await once(socket, "open");
names[await rpc("eth_subscribe", "logs", {})] = "log";
names[await rpc("eth_subscribe", "newHeads")] = "head";
const [from] = await rpc("eth_accounts");
// A contract that logs one topic whenever it is called: PUSH32 topic, PUSH1 0, PUSH1 0, LOG1, STOP.
const data = `0x602780600b6000396000f37f${"11".repeat(32)}60006000a100`;
const hash = await rpc("eth_sendTransaction", { from, data, gas: "0x30000" });
await until(() => rpc("eth_getTransactionReceipt", hash));
const to = (await rpc("eth_getTransactionReceipt", hash)).contractAddress;
await rpc("eth_sendTransaction", { from, to, gas: "0x30000" });
await until(() => seen.some(([name]) => name === "log"));
const before = seen.filter(([name]) => name === "log").length;
await until(() => seen.filter(([name]) => name === "head").length === 2);
seen.length = 0;
await rpc("anvil_reorg", 1, []);
await rpc("evm_mine");
await until(() => seen.some(([name, number]) => name === "head" && number === 3));
await new Promise((done) => setTimeout(done, 2000));
console.log("logs before:", before);
console.log("heads after:", ...seen.filter(([name]) => name === "head").map(([, number]) => number));
console.log("removed:", seen.filter(([name]) => name === "log").length);
console.log("eth_getLogs:", (await rpc("eth_getLogs", { fromBlock: "0x0" })).length);
process.exit();
E
expect node reorg.mjs <<'E'
logs before: 1
heads after: 2 3
removed: 0
eth_getLogs: 0
E
