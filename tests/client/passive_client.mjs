// Runs passive-client vectors of the MLS working group, for suites 1 and 3: passive_client.mjs FILE…
// What their groups do and ours refuse (proposals by reference, pre-shared keys, commits in the clear)
// goes to ts-mls directly, with this engine's suites, corrections and states.
import * as fs from "node:fs";
import { joinGroup, makePskIndex } from "ts-mls/clientState.js";
import { decodeMlsMessage } from "ts-mls/message.js";
import { processPrivateMessage, processPublicMessage } from "ts-mls/processMessages.js";
import { decodeRatchetTree } from "ts-mls/ratchetTree.js";
import { bytesToBase64 } from "ts-mls/util/byteArray.js";
import { clientConfig } from "../../client/mls_engine/rules.mjs";
import { pastKeys, readState, writeState } from "../../client/mls_engine/states.mjs";
import { SUITE_NAMES, suiteNamed } from "../../client/mls_engine/suites.mjs";

const PAST_EPOCHS = 3n;
// Their credentials are not all basic.
const config = { ...clientConfig(), authService: { validateCredential: async () => true } };

function bytes(hex) {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

function message(hex) {
  return decodeMlsMessage(bytes(hex), 0)[0];
}

function expectAuthenticator(state, hex) {
  const found = Buffer.from(state.keySchedule.epochAuthenticator).toString("hex");
  if (found !== hex) throw new Error(`epoch ${state.groupContext.epoch}: expected ${hex}, got ${found}`);
}

async function process(state, hex, external, suite) {
  const received = message(hex);
  const secrets = makePskIndex(state, external);
  const processed =
    received.wireformat === "mls_private_message"
      ? await processPrivateMessage(state, received.privateMessage, secrets, suite)
      : await processPublicMessage(state, received.publicMessage, secrets, suite);
  return processed.newState;
}

// They use pre-shared keys of past epochs, which ts-mls looks for among the keys that are kept.
function readAgain(state) {
  const read = readState(writeState(state, PAST_EPOCHS));
  const kept = [...read.historicalReceiverData.keys()].map((epoch) => [epoch, pastKeys(read, epoch)]);
  return { ...read, historicalReceiverData: new Map(kept), clientConfig: config };
}

async function follow(vector) {
  const suite = suiteNamed(SUITE_NAMES[vector.cipher_suite]);
  const keys = {
    initPrivateKey: bytes(vector.init_priv),
    hpkePrivateKey: bytes(vector.encryption_priv),
    signaturePrivateKey: bytes(vector.signature_priv),
  };
  const external = Object.fromEntries(vector.external_psks.map((each) => [bytesToBase64(bytes(each.psk_id)), bytes(each.psk)]));
  const tree = vector.ratchet_tree ? decodeRatchetTree(bytes(vector.ratchet_tree), 0)[0] : undefined;
  const { keyPackage } = message(vector.key_package);
  const { welcome } = message(vector.welcome);
  let state = await joinGroup(welcome, keyPackage, keys, makePskIndex(undefined, external), suite, tree, undefined, config);
  expectAuthenticator(state, vector.initial_epoch_authenticator);
  for (const epoch of vector.epochs) {
    for (const proposal of epoch.proposals) state = await process(state, proposal, external, suite);
    state = await process(state, epoch.commit, external, suite);
    expectAuthenticator(state, epoch.epoch_authenticator);
    state = readAgain(state);
  }
  return 1 + vector.epochs.length;
}

let groups = 0;
let epochs = 0;
for (const file of globalThis.process.argv.slice(2)) {
  const vectors = JSON.parse(fs.readFileSync(file, "utf8"));
  for (const vector of vectors.filter((each) => each.cipher_suite in SUITE_NAMES)) {
    epochs += await follow(vector);
    groups += 1;
  }
}
console.log(JSON.stringify({ groups, epochs }));
