#!/usr/bin/env bash
# Guess: each `getBalance` or `getTransactionCount` of an ethers provider asks the endpoint.
# Seen: JsonRpcProvider of ethers 6.17.0 answers the same question from its memory for 250 ms (`cacheTimeout`), also
#   after a transaction of its own was mined. `cacheTimeout: -1` asks each time.
# Why it matters: on fast chains (Arbitrum, development chains) the next nonce or balance is the former one, and a test
#   fails now and then.
. "$(dirname "$0")/lib.sh"
npm_packages ethers@6.17.0 @foundry-rs/anvil@1.7.1
start_anvil

cat >balance.mjs <<'E'
import { JsonRpcProvider } from "ethers";

const to = "0x" + "99".repeat(20);

// The balance that the provider answers once the chain has a new one; asked again where the machine took too long.
const stale = async (provider) => {
  const [from] = await provider.send("eth_accounts", []);
  for (;;) {
    await new Promise((done) => setTimeout(done, 500));
    const start = Date.now();
    const before = await provider.getBalance(to);
    await provider.send("eth_sendTransaction", [{ from, to, value: "0x5" }]);
    while (BigInt(await provider.send("eth_getBalance", [to, "latest"])) === before) continue;
    const after = await provider.getBalance(to);
    if (Date.now() - start < 250) return after === before;
  }
};
for (const options of [{}, { cacheTimeout: -1 }]) {
  const provider = new JsonRpcProvider(process.env.ANVIL, 31337, options);
  console.log(JSON.stringify(options), "former balance:", await stale(provider));
  provider.destroy();
}
E
expect node balance.mjs <<'E'
{} former balance: true
{"cacheTimeout":-1} former balance: false
E
