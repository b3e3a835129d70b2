// The calls of the engine: bytes in, bytes out. Nothing is kept from one to the next.
import { createGroup, joinGroup } from "ts-mls/clientState.js";
import { createCommit } from "ts-mls/createCommit.js";
import { createApplicationMessage } from "ts-mls/createMessage.js";
import { decryptGroupInfo, decryptGroupSecrets } from "ts-mls/welcome.js";
import { ratchetTreeFromExtension } from "ts-mls/groupInfo.js";
import { generateKeyPackageWithKey, makeKeyPackageRef } from "ts-mls/keyPackage.js";
import { decodeMlsMessage, encodeMlsMessage } from "ts-mls/message.js";
import { unprotectPrivateMessage } from "ts-mls/messageProtection.js";
import { decryptSenderData } from "ts-mls/privateMessage.js";
import { processPrivateMessage } from "ts-mls/processMessages.js";
import { emptyPskIndex } from "ts-mls/pskIndex.js";
import { checksum, withChecksum, withoutChecksum } from "./checked.mjs";
import { encodeFields, decodeFields, number, readNumber } from "./fields.mjs";
import { EpochAhead, KeyUsed, OwnCommit, Refused, StateBroken } from "./refusals.mjs";
import {
  BACKUP_ROLE,
  ROLE_EXTENSION,
  checkNewKeys,
  checkPath,
  checkProposals,
  checkTree,
  clientConfig,
  isBackup,
  refuseUnless,
  same,
} from "./rules.mjs";
import { pastKeys, readState, writeState } from "./states.mjs";
import { SUITE_NAMES, suiteNamed } from "./suites.mjs";

const VERSION = "mls10";
const NOTHING = Buffer.alloc(0);
const SEED_LENGTH = 32;
// The text of ts-mls where a member used a key twice, or a message came twice.
const KEY_USED = "Desired gen in the past";

function memberFields(leaf, node) {
  return [number(leaf), node.credential.identity, node.signaturePublicKey, number(isBackup(node) ? 1 : 0)];
}

function leafAt(tree, leaf) {
  const node = tree[2 * leaf];
  refuseUnless(node?.nodeType === "leaf", "a member's leaf");
  return node.leaf;
}

function members(tree) {
  return tree.flatMap((node, index) => (node?.nodeType === "leaf" ? memberFields(index / 2, node.leaf) : []));
}

function viewFields(state) {
  return encodeFields([
    state.groupContext.groupId,
    number(state.groupContext.epoch),
    number(state.privatePath.leafIndex),
    number(state.groupActiveState.kind === "active" ? 1 : 0),
    state.keySchedule.epochAuthenticator,
    encodeFields(members(state.ratchetTree)),
  ]);
}

function decodeMessage(data, wireformat) {
  const decoded = decodeMlsMessage(new Uint8Array(data), 0);
  refuseUnless(decoded !== undefined && decoded[1] === data.length, "one whole MLSMessage");
  refuseUnless(decoded[0].wireformat === wireformat, wireformat);
  return decoded[0];
}

function isActive(state) {
  return state.groupActiveState.kind === "active";
}

async function newKeyPackage(call, suite, credential, publicKey, seed, notBefore, notAfter, asBackup) {
  const role = { extensionType: ROLE_EXTENSION, extensionData: BACKUP_ROLE };
  const extensions = readNumber(asBackup) === 1n ? [role] : [];
  const cs = suiteNamed(SUITE_NAMES[readNumber(suite)]);
  const capabilities = {
    versions: [VERSION],
    ciphersuites: Object.values(SUITE_NAMES),
    extensions: extensions.map((each) => each.extensionType),
    proposals: [],
    credentials: ["basic"],
  };
  const { publicPackage, privatePackage } = await generateKeyPackageWithKey(
    { credentialType: "basic", identity: new Uint8Array(credential) },
    capabilities,
    { notBefore: readNumber(notBefore), notAfter: readNumber(notAfter) },
    [],
    { signKey: new Uint8Array(seed), publicKey: new Uint8Array(publicKey) },
    cs,
    extensions,
  );
  const message = encodeMlsMessage({ version: VERSION, wireformat: "mls_key_package", keyPackage: publicPackage });
  const secret = encodeFields([privatePackage.initPrivateKey, privatePackage.hpkePrivateKey, checksum(message)]);
  return [message, withChecksum(secret)];
}

// Damage to what is our own is no fault of a welcome.
function ownOffer(keyPackage, secret, seed) {
  const [initPrivateKey, hpkePrivateKey, of] = decodeFields(withoutChecksum(secret)).map((field) => new Uint8Array(field));
  if (seed.length !== SEED_LENGTH || !same(of, checksum(keyPackage))) throw new StateBroken("not the secret of this key package");
  const signaturePrivateKey = new Uint8Array(seed);
  const own = decodeMessage(keyPackage, "mls_key_package").keyPackage;
  return [own, { initPrivateKey, hpkePrivateKey, signaturePrivateKey }];
}

async function create(call, keyPackage, secret, seed, groupId) {
  const [own, keys] = ownOffer(keyPackage, secret, seed);
  const config = clientConfig();
  const cs = suiteNamed(own.cipherSuite);
  const state = await createGroup(new Uint8Array(groupId), own, keys, [], cs, config);
  return [writeState(state, call.pastEpochs)];
}

async function join(call, keyPackage, secret, seed, welcomeMessage) {
  const [own, keys] = ownOffer(keyPackage, secret, seed);
  const { welcome } = decodeMessage(welcomeMessage, "mls_welcome");
  refuseUnless(welcome.cipherSuite === own.cipherSuite, "a welcome of the key package's cipher suite");
  const cs = suiteNamed(own.cipherSuite);
  await checkWelcome(welcome, own, keys, cs);
  const config = clientConfig();
  const state = await joinGroup(welcome, own, keys, emptyPskIndex, cs, undefined, undefined, config);
  return [writeState(state, call.pastEpochs)];
}

// Everybody who reads a key package can send a welcome.
async function checkWelcome(welcome, own, keys, cs) {
  const reference = await makeKeyPackageRef(own, cs.hash);
  const key = await cs.hpke.importPrivateKey(keys.initPrivateKey);
  const secrets = await decryptGroupSecrets(key, reference, welcome, cs.hpke);
  refuseUnless(secrets !== undefined && secrets.psks.length === 0, "a welcome without pre-shared keys");
  const info = await decryptGroupInfo(welcome, secrets.joinerSecret, new Uint8Array(cs.kdf.size), cs);
  refuseUnless(info !== undefined, "a welcome with the group's description");
  refuseUnless(info.groupContext.extensions.length === 0, "a group without extensions");
  checkTree(ratchetTreeFromExtension(info));
}

async function view(call, stateData) {
  return [viewFields(readState(stateData))];
}

async function commit(call, stateData, proposals, authenticatedData) {
  const state = readState(stateData);
  refuseUnless(isActive(state), "a group of which this installation is a member");
  const inline = proposals.map((proposal) => ({ proposalOrRefType: "proposal", proposal }));
  checkProposals(state, inline);
  checkNewKeys(state, inline, undefined);
  const cs = suiteNamed(state.groupContext.cipherSuite);
  const made = await createCommit(
    { state, cipherSuite: cs },
    { extraProposals: proposals, ratchetTreeExtension: true, authenticatedData: new Uint8Array(authenticatedData) },
  );
  const welcome =
    made.welcome === undefined
      ? NOTHING
      : encodeMlsMessage({ version: VERSION, wireformat: "mls_welcome", welcome: made.welcome });
  return [encodeMlsMessage(made.commit), welcome, writeState(made.newState, call.pastEpochs)];
}

async function add(call, stateData, authenticatedData, ...keyPackages) {
  const proposals = keyPackages.map((data) => {
    const { keyPackage } = decodeMessage(data, "mls_key_package");
    return { proposalType: "add", add: { keyPackage } };
  });
  return commit(call, stateData, proposals, authenticatedData);
}

async function remove(call, stateData, authenticatedData, ...leaves) {
  const proposals = leaves.map((leaf) => ({
    proposalType: "remove",
    remove: { removed: Number(readNumber(leaf)) },
  }));
  return commit(call, stateData, proposals, authenticatedData);
}

async function update(call, stateData, authenticatedData) {
  return commit(call, stateData, [], authenticatedData);
}

async function encrypt(call, stateData, plaintext, authenticatedData) {
  const state = readState(stateData);
  refuseUnless(isActive(state), "a group of which this installation is a member");
  const cs = suiteNamed(state.groupContext.cipherSuite);
  const made = await createApplicationMessage(state, new Uint8Array(plaintext), cs, new Uint8Array(authenticatedData));
  const message = { version: VERSION, wireformat: "mls_private_message", privateMessage: made.privateMessage };
  return [encodeMlsMessage(message), writeState(made.newState, call.pastEpochs)];
}

async function receive(call, stateData, messageData) {
  const state = readState(stateData);
  refuseUnless(isActive(state), "a group of which this installation is a member");
  const { privateMessage: message } = decodeMessage(messageData, "mls_private_message");
  const current = state.groupContext.epoch;
  // The header is in the clear: what it excludes costs no decryption.
  refuseUnless(same(message.groupId, state.groupContext.groupId), "a message of this group");
  refuseUnless(message.contentType !== "proposal", "no proposal on its own");
  if (message.epoch > current) throw new EpochAhead(`expected an epoch up to ${current}, got ${message.epoch}`);
  if (message.contentType === "commit") {
    refuseUnless(message.epoch === current, `a commit of epoch ${current}, got ${message.epoch}`);
    return receiveCommit(call, state, message);
  }
  refuseUnless(message.epoch >= current - call.pastEpochs, `an epoch from ${current - call.pastEpochs}, got ${message.epoch}`);
  return receiveApplication(call, state, message);
}

function keysOf(state, epoch) {
  if (epoch === state.groupContext.epoch) {
    const { secretTree, ratchetTree, groupContext } = state;
    return { secretTree, ratchetTree, groupContext, senderDataSecret: state.keySchedule.senderDataSecret };
  }
  const kept = pastKeys(state, epoch);
  refuseUnless(kept !== undefined, `an epoch since this installation joined, got ${epoch}`);
  return kept;
}

async function open(state, keys, message) {
  const cs = suiteNamed(state.groupContext.cipherSuite);
  const config = state.clientConfig.keyRetentionConfig;
  const { senderDataSecret, secretTree, ratchetTree, groupContext } = keys;
  try {
    const opened = await unprotectPrivateMessage(senderDataSecret, message, secretTree, ratchetTree, groupContext, config, cs);
    const sender = opened.content.content.sender.leafIndex;
    leafAt(ratchetTree, sender);
    return { ...opened, sender };
  } catch (error) {
    if (error.message !== KEY_USED) throw error;
    const { leafIndex } = await decryptSenderData(message, senderDataSecret, cs);
    throw new KeyUsed(`${leafIndex}`);
  }
}

async function receiveApplication(call, state, message) {
  const keys = keysOf(state, message.epoch);
  const { content, tree, sender } = await open(state, keys, message);
  const newState = { ...state };
  if (message.epoch === state.groupContext.epoch) newState.secretTree = tree;
  else
    newState.historicalReceiverData = new Map(state.historicalReceiverData).set(message.epoch, {
      ...keys,
      secretTree: tree,
    });
  return [
    Buffer.from("application"),
    ...memberFields(sender, leafAt(keys.ratchetTree, sender)),
    number(message.epoch),
    message.authenticatedData,
    content.content.applicationData,
    writeState(newState, call.pastEpochs),
  ];
}

async function receiveCommit(call, state, message) {
  const { content, sender } = await open(state, keysOf(state, message.epoch), message);
  if (sender === state.privatePath.leafIndex) throw new OwnCommit("expected a commit of another member");
  const { proposals, path } = content.content.commit;
  checkProposals(state, proposals);
  checkPath(state, sender, path);
  checkNewKeys(state, proposals, path);
  const cs = suiteNamed(state.groupContext.cipherSuite);
  const { newState } = await processPrivateMessage(state, message, emptyPskIndex, cs);
  const kinds = proposals.map(({ proposal }) => proposal);
  const removed = kinds.filter((each) => each.proposalType === "remove").map((each) => each.remove.removed);
  const added = kinds.filter((each) => each.proposalType === "add").map((each) => each.add.keyPackage.leafNode);
  return [
    Buffer.from("commit"),
    ...memberFields(sender, leafAt(state.ratchetTree, sender)),
    message.authenticatedData,
    encodeFields(added.flatMap((node) => memberFields(leafOf(newState.ratchetTree, node), node))),
    encodeFields(removed.flatMap((leaf) => memberFields(leaf, leafAt(state.ratchetTree, leaf)))),
    viewFields(newState),
    writeState(newState, call.pastEpochs),
  ];
}

function leafOf(tree, leafNode) {
  const index = tree.findIndex(
    (node) => node?.nodeType === "leaf" && same(node.leaf.signaturePublicKey, leafNode.signaturePublicKey),
  );
  if (index < 0) throw new Refused("expected a commit that adds whom it names");
  return index / 2;
}

export const CALLS = { newKeyPackage, create, join, view, add, remove, update, encrypt, receive };
