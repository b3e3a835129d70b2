#!/usr/bin/env bash
# Guess: on a development chain that mines at once, the block `finalized` is the newest one; or there is none.
# Seen: ganache 7.9.2 answers the newest block; anvil 1.7.1 answers the one 64 blocks before the newest, and block 0
#   until there are as many (`--slots-in-an-epoch` 1: 2 blocks).
# Why it matters: what waits for finality never goes on in a test on anvil with a few blocks, and needs no wait on the
#   other. Mine 64 more, or set the option.
. "$(dirname "$0")/lib.sh"
npm_packages @foundry-rs/anvil@1.7.1 ganache@7.9.2
start_anvil
export default=$ANVIL
start_anvil --slots-in-an-epoch 1
export short=$ANVIL

cat >finalized.mjs <<'E'
import ganache from "ganache";

const http = (url) => async ({ method, params }) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  return (await (await fetch(url, { method: "POST", headers, body })).json()).result;
};
const provider = ganache.provider({ logging: { quiet: true } });
const chains = {
  anvil: http(process.env.default),
  "anvil --slots-in-an-epoch 1": http(process.env.short),
  ganache: (request) => provider.request(request),
};
for (const [name, request] of Object.entries(chains)) {
  const finalized = [];
  for (let block = 1; block <= 70; block += 1) {
    await request({ method: "evm_mine", params: [] });
    if (block % 35 === 0) {
      finalized.push(Number((await request({ method: "eth_getBlockByNumber", params: ["finalized", false] })).number));
    }
  }
  console.log(name, "35 and 70 blocks:", ...finalized);
}
process.exit();
E
expect node finalized.mjs <<'E'
anvil 35 and 70 blocks: 0 6
anvil --slots-in-an-epoch 1 35 and 70 blocks: 33 68
ganache 35 and 70 blocks: 35 70
E
