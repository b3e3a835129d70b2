#!/usr/bin/env bash
# Guess: the blocks that `anvil_reorg` makes are dated like those that they replace, or now, and the next one is dated now.
# Seen: anvil 1.7.1 dates all of them as the last block that stays, and its clock goes on from there: it is late from then
#   on by the time that had passed since that block.
# Why it matters: a drill of a reorg leaves a chain whose blocks lie before what was signed around them, and a watcher
#   takes it for stale. Set the time after it (`anvil_setTime`).
. "$(dirname "$0")/lib.sh"
npm_packages @foundry-rs/anvil@1.7.1
start_anvil

cat >reorg.mjs <<'E'
const rpc = async (method, ...params) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  return (await (await fetch(process.env.ANVIL, { method: "POST", headers, body })).json()).result;
};
const time = async (block) => Number((await rpc("eth_getBlockByNumber", block, false)).timestamp);
const wait = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

for (let block = 1; block <= 3; block += 1) {
  await wait(2);
  await rpc("evm_mine");
}
const stays = await time("0x1");
console.log("rises before:", (await time("0x2")) > stays && (await time("0x3")) > (await time("0x2")));
await rpc("anvil_reorg", 2, []);
console.log("after:", (await time("0x2")) - stays, (await time("0x3")) - stays, "s after the block that stays");
await rpc("evm_mine");
console.log("late by 3 s or more:", Math.floor(Date.now() / 1000) - (await time("latest")) >= 3);
E
expect node reorg.mjs <<'E'
rises before: true
after: 0 0 s after the block that stays
late by 3 s or more: true
E
