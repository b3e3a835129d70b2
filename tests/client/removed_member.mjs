// Prints whether a removed member can compute the keys of the epoch after its removal: it knows all of the
// last epoch's secrets, and tries what a commit without new secrets adds to them, zeros.
import { initializeEpoch } from "ts-mls/keySchedule.js";
import { number } from "../../client/mls_engine/fields.mjs";
import { CALLS } from "../../client/mls_engine/groups.mjs";
import { readState } from "../../client/mls_engine/states.mjs";
import { suiteNamed } from "../../client/mls_engine/suites.mjs";
import * as crypto from "node:crypto";

const call = { pastEpochs: 3n };

async function offer(name) {
  const { privateKey, publicKey } = crypto.generateKeyPairSync("ed25519");
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(16);
  const key = publicKey.export({ format: "der", type: "spki" }).subarray(12);
  const lifetime = [number(0), number(0xffffffff)];
  return [...(await CALLS.newKeyPackage(call, number(3), Buffer.from(name), key, seed, ...lifetime, number(0))), seed];
}

const [alice, aliceSecret, aliceSeed] = await offer("alice");
const [bob, bobSecret, bobSeed] = await offer("bob");
const [alone] = await CALLS.create(call, alice, aliceSecret, aliceSeed, Buffer.alloc(32));
const [, welcome, together] = await CALLS.add(call, alone, Buffer.alloc(0), bob);
const [known] = await CALLS.join(call, bob, bobSecret, bobSeed, Buffer.from(welcome));
const [, , after] = await CALLS.remove(call, together, Buffer.alloc(0), number(1));

const { keySchedule, groupContext } = readState(after);
const suite = suiteNamed(groupContext.cipherSuite);
const zeros = new Uint8Array(suite.kdf.size);
const { initSecret } = readState(known).keySchedule;
const guess = await initializeEpoch(initSecret, zeros, groupContext, zeros, suite.kdf);
const isKnown = Buffer.compare(guess.keySchedule.epochAuthenticator, keySchedule.epochAuthenticator) === 0;
console.log(isKnown ? "known" : "unknown");
