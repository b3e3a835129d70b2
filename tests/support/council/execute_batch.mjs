// Executes a batch file of Safe's Transaction Builder with Safe's own kit: the other implementation.
// Standard input: {url, safe, batch, keys, contracts}. Prints the SafeTx hash, and the transaction's.
import { readFileSync } from "node:fs";
import kit from "@safe-global/protocol-kit";

const Safe = kit.default ?? kit;
const { url, safe, batch, keys, contracts } = JSON.parse(readFileSync(0, "utf8"));
const contractNetworks = { [batch.chainId]: contracts };

async function connect(signer) {
  return Safe.init({ provider: url, signer, safeAddress: safe, contractNetworks });
}

const first = await connect(keys[0]);
const transactions = batch.transactions.map(({ to, value, data }) => ({ to, value, data }));
let transaction = await first.createTransaction({ transactions, onlyCalls: true });
const hash = await first.getTransactionHash(transaction);
for (const key of keys) {
  transaction = await (await connect(key)).signTransaction(transaction);
}
const sent = await first.executeTransaction(transaction);
console.log(JSON.stringify({ hash, transaction: sent.hash }));
