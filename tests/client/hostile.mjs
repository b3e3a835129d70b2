// The engine's child process with the calls of a member that breaks the rules, for tests.
import { encode } from "ts-mls/codec/tlsEncoder.js";
import { createCommit } from "ts-mls/createCommit.js";
import { createProposal } from "ts-mls/createMessage.js";
import { createContentCommitSignature } from "ts-mls/framedContent.js";
import { extractWelcomeSecret } from "ts-mls/groupInfo.js";
import { encryptGroupInfo, encryptGroupSecrets } from "ts-mls/welcome.js";
import { makeKeyPackageRef } from "ts-mls/keyPackage.js";
import { decodeMlsMessage, encodeMlsMessage } from "ts-mls/message.js";
import { protect, protectApplicationData } from "ts-mls/messageProtection.js";
import { encodeNode, ratchetTreeEncoder } from "ts-mls/ratchetTree.js";
import { createUpdatePath } from "ts-mls/updatePath.js";
import { CALLS } from "../../client/mls_engine/groups.mjs";
import { readNumber } from "../../client/mls_engine/fields.mjs";
import { checkProposals } from "../../client/mls_engine/rules.mjs";
import { readState } from "../../client/mls_engine/states.mjs";
import { suiteNamed } from "../../client/mls_engine/suites.mjs";

const VERSION = "mls10";

function opened(call, data) {
  const state = readState(data);
  return [state, suiteNamed(state.groupContext.cipherSuite)];
}

async function loneProposal(call, data) {
  const [state, cipherSuite] = opened(call, data);
  const proposal = { proposalType: "remove", remove: { removed: 0 } };
  return [encodeMlsMessage((await createProposal(state, false, proposal, cipherSuite)).message)];
}

async function commitByReference(call, data, removed) {
  const [state, cipherSuite] = opened(call, data);
  const proposal = { proposalType: "remove", remove: { removed: Number(readNumber(removed)) } };
  const { newState } = await createProposal(state, false, proposal, cipherSuite);
  return [encodeMlsMessage((await createCommit({ state: newState, cipherSuite })).commit)];
}

async function publicCommit(call, data) {
  const [state, cipherSuite] = opened(call, data);
  return [encodeMlsMessage((await createCommit({ state, cipherSuite }, { wireAsPublicMessage: true })).commit)];
}

async function commitOfKind(call, data, kind) {
  const [state, cipherSuite] = opened(call, data);
  const proposals = {
    extensions: { proposalType: "group_context_extensions", groupContextExtensions: { extensions: [] } },
    reinit: {
      proposalType: "reinit",
      reinit: {
        groupId: state.groupContext.groupId,
        version: VERSION,
        cipherSuite: state.groupContext.cipherSuite,
        extensions: [],
      },
    },
    custom: { proposalType: 0xf000, proposalData: new Uint8Array(3) },
  };
  const extraProposals = [proposals[kind.toString()]];
  return [encodeMlsMessage((await createCommit({ state, cipherSuite }, { extraProposals })).commit)];
}

async function commitAdding(call, data, ...keyPackages) {
  const [state, cipherSuite] = opened(call, data);
  const extraProposals = keyPackages.map((each) => {
    const [{ keyPackage }] = decodeMlsMessage(new Uint8Array(each), 0);
    return { proposalType: "add", add: { keyPackage } };
  });
  return [encodeMlsMessage((await createCommit({ state, cipherSuite }, { extraProposals })).commit)];
}

// A commit whose path names another credential for its sender.
async function commitAsSomebodyElse(call, data, credential) {
  const [state, cipherSuite] = opened(call, data);
  const index = 2 * state.privatePath.leafIndex;
  const ratchetTree = state.ratchetTree.slice();
  const { leaf } = ratchetTree[index];
  const identity = new Uint8Array(credential);
  ratchetTree[index] = { nodeType: "leaf", leaf: { ...leaf, credential: { credentialType: "basic", identity } } };
  return [encodeMlsMessage((await createCommit({ state: { ...state, ratchetTree }, cipherSuite })).commit)];
}

// A commit whose path gives its sender another signature key, which signs the leaf.
async function commitOfAnotherKey(call, data, seed, publicKey) {
  const [state, cipherSuite] = opened(call, data);
  const index = 2 * state.privatePath.leafIndex;
  const ratchetTree = state.ratchetTree.slice();
  const leaf = { ...ratchetTree[index].leaf, signaturePublicKey: new Uint8Array(publicKey) };
  ratchetTree[index] = { nodeType: "leaf", leaf };
  const sign = (key, message) =>
    cipherSuite.signature.sign(Buffer.from(message).includes("LeafNodeTBS") ? seed : key, message);
  const forging = { ...cipherSuite, signature: { ...cipherSuite.signature, sign } };
  return [encodeMlsMessage((await createCommit({ state: { ...state, ratchetTree }, cipherSuite: forging })).commit)];
}

// A commit as it should be, but for the tag that shows that its sender has the new epoch's keys.
async function commitWithWrongTag(call, data) {
  const [state, cs] = opened(call, data);
  const mac = async (key, content) => (await cs.hash.mac(key, content)).map((byte) => byte ^ 1);
  const cipherSuite = { ...cs, hash: { ...cs.hash, mac } };
  return [encodeMlsMessage((await createCommit({ state, cipherSuite })).commit)];
}

// A message with the keys of another member, which each member knows, and its own signature.
async function forgedMessage(call, data, leaf, plaintext) {
  const [state, cipherSuite] = opened(call, data);
  const { privateMessage } = await protectApplicationData(
    state.signaturePrivateKey,
    state.keySchedule.senderDataSecret,
    new Uint8Array(plaintext),
    new Uint8Array(),
    state.groupContext,
    state.secretTree,
    Number(readNumber(leaf)),
    state.clientConfig.paddingConfig,
    cipherSuite,
  );
  return [encodeMlsMessage({ version: VERSION, wireformat: "mls_private_message", privateMessage })];
}

// A commit of which only the message's signature is right.
async function craftedCommit(call, data, kind, count) {
  const [state, cs] = opened(call, data);
  const many = Number(readNumber(count));
  const context = state.groupContext;
  const path = await ownPath(state, cs);
  const contents = {
    removals: { proposals: new Array(many).fill(inline({ proposalType: "remove", remove: { removed: 1 } })), path },
    path: { proposals: [], path: { ...path, nodes: new Array(many).fill(path.nodes[0]) } },
    capabilities: { proposals: [], path: { ...path, leafNode: crowded(path.leafNode, many) } },
  };
  const sender = { senderType: "member", leafIndex: state.privatePath.leafIndex };
  const key = state.signaturePrivateKey;
  const commit = contents[kind.toString()];
  const { framedContent, signature } = await createContentCommitSignature(
    context, "mls_private_message", commit, sender, new Uint8Array(), key, cs.signature,
  );
  const auth = { contentType: "commit", signature, confirmationTag: new Uint8Array(cs.kdf.size) };
  const { privateMessage } = await protect(
    state.keySchedule.senderDataSecret,
    new Uint8Array(),
    context,
    state.secretTree,
    { ...framedContent, auth },
    sender.leafIndex,
    state.clientConfig.paddingConfig,
    cs,
  );
  return [encodeMlsMessage({ version: VERSION, wireformat: "mls_private_message", privateMessage })];
}

function inline(proposal) {
  return { proposalOrRefType: "proposal", proposal };
}

async function ownPath(state, cs) {
  const { leafIndex } = state.privatePath;
  const [, path] = await createUpdatePath(state.ratchetTree, leafIndex, state.groupContext, state.signaturePrivateKey, cs);
  return path;
}

function crowded(leaf, count) {
  return { ...leaf, capabilities: { ...leaf.capabilities, extensions: new Array(count).fill(0xff00) } };
}

// A stranger's welcome: only what comes before the tree's check is right.
async function craftedWelcome(call, data, keyPackageData, kind, count) {
  const [state, cs] = opened(call, data);
  const [{ keyPackage }] = decodeMlsMessage(new Uint8Array(keyPackageData), 0);
  const zeros = new Uint8Array(cs.kdf.size);
  const joinerSecret = cs.rng.randomBytes(cs.kdf.size);
  const welcomeSecret = await extractWelcomeSecret(joinerSecret, zeros, cs.kdf);
  const extensionData = craftedTree(state.ratchetTree[0].leaf, kind.toString(), Number(readNumber(count)));
  const extensions = [{ extensionType: "ratchet_tree", extensionData }];
  const info = { groupContext: state.groupContext, extensions, confirmationTag: zeros, signer: 0, signature: zeros };
  const encryptedGroupInfo = await encryptGroupInfo(info, welcomeSecret, cs);
  const initKey = await cs.hpke.importPublicKey(keyPackage.initKey);
  const secrets = { joinerSecret, pathSecret: undefined, psks: [] };
  const { enc, ct } = await encryptGroupSecrets(initKey, encryptedGroupInfo, secrets, cs.hpke);
  const newMember = await makeKeyPackageRef(keyPackage, cs.hash);
  const welcome = {
    cipherSuite: state.groupContext.cipherSuite,
    secrets: [{ newMember, encryptedGroupSecrets: { kemOutput: enc, ciphertext: ct } }],
    encryptedGroupInfo,
  };
  return [encodeMlsMessage({ version: VERSION, wireformat: "mls_welcome", welcome })];
}

function craftedTree(leaf, kind, count) {
  const node = { nodeType: "leaf", leaf };
  const parent = (unmergedLeaves) => ({
    nodeType: "parent",
    parent: { hpkePublicKey: new Uint8Array(32), parentHash: new Uint8Array(), unmergedLeaves },
  });
  if (kind === "wide") return wideTree(node, count);
  const trees = {
    unmerged: [node, parent(new Array(count).fill(1)), node],
    elsewhere: [node, parent([]), node, parent([]), node, parent([1]), node],
    capabilities: [{ nodeType: "leaf", leaf: crowded(leaf, count) }],
  };
  return encode(ratchetTreeEncoder)(trees[kind]);
}

// A zero stands for each empty node, and the last one is not empty. The encoder takes a stack of this depth.
function wideTree(node, width) {
  const content = Buffer.concat([Buffer.alloc(width - 1), Buffer.of(1), encodeNode(node)]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE((0x80000000 | content.length) >>> 0);
  return new Uint8Array(Buffer.concat([length, content]));
}

// Only the rule: a group of so many members takes half a minute to make.
async function addToGroupOf(call, count) {
  const ratchetTree = new Array(Number(readNumber(count))).fill({ nodeType: "leaf" });
  const lists = { versions: [], ciphersuites: [], extensions: [], proposals: [], credentials: [] };
  const leafNode = { capabilities: lists, extensions: [] };
  checkProposals({ ratchetTree }, [inline({ proposalType: "add", add: { keyPackage: { leafNode } } })]);
  return [];
}

async function hang() {
  for (;;);
}

async function exhaust(call, kind) {
  const kept = [];
  for (;;) kept.push(kind.toString() === "heap" ? new Array(1 << 16).fill(kept.length) : Buffer.alloc(1 << 24, 1));
}

async function touchOutside(call, kind) {
  const attempts = {
    file: async () => (await import("node:fs")).readFileSync("/etc/hostname"),
    write: async () => (await import("node:fs")).writeFileSync("/tmp/mls-engine-was-here", ""),
    program: async () => (await import("node:child_process")).execFileSync("/bin/true"),
    environment: async () => {
      if (Object.keys(process.env).length > 0) return "variables";
      throw new Error("none");
    },
    network: async () => {
      const { connect } = await import("node:net");
      await new Promise((resolve, reject) => connect(9, "127.0.0.1").on("connect", resolve).on("error", reject));
    },
  };
  try {
    await attempts[kind.toString()]();
  } catch (error) {
    return [Buffer.from(error.code ?? error.message)];
  }
  return [Buffer.from("reached")];
}

Object.assign(CALLS, {
  addToGroupOf,
  loneProposal,
  commitByReference,
  publicCommit,
  commitOfKind,
  commitAdding,
  commitAsSomebodyElse,
  commitOfAnotherKey,
  commitWithWrongTag,
  forgedMessage,
  craftedCommit,
  craftedWelcome,
  hang,
  exhaust,
  touchOutside,
});
await import("../../client/mls_engine/main.mjs");
