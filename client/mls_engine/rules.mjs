// The rules for what others send, beyond those of RFC 9420.
import { defaultKeyPackageEqualityConfig } from "ts-mls/keyPackageEqualityConfig.js";
import { defaultPaddingConfig } from "ts-mls/paddingConfig.js";
import { Refused } from "./refusals.mjs";

// A call of so large a group takes seconds, and so does a commit of so many changes in it.
export const MOST_MEMBERS = 1024;
export const MOST_PROPOSALS = 100;
export const MOST_CREDENTIAL_BYTES = 1024;
// ts-mls compares each of one list with each of another: lists without bounds would take hours.
const MOST_PATH_NODES = 32;
const MOST_CAPABILITIES = 256;
const MOST_LEAF_EXTENSIONS = 64;
const KEY_LENGTH = 32;
// RFC 9420 leaves this number to applications: a backup's leaf has it, with XIP-31's ContactRole. As
// ROLE_EXTENSION of chainkit/protocol/mls/key_package.py.
export const ROLE_EXTENSION = 0xf031;
export const BACKUP_ROLE = Uint8Array.of(2);
// As OpenMLS has it: messages of one sender that may be missing before the next.
const FORWARD_GENERATIONS = 1000;
const KEPT_GENERATIONS = 100;

export function refuseUnless(condition, expected) {
  if (!condition) throw new Refused(`expected ${expected}`);
}

export function same(left, right) {
  return Buffer.compare(left, right) === 0;
}

export function isAcceptable(credential, signaturePublicKey) {
  return (
    credential.credentialType === "basic" &&
    credential.identity.length <= MOST_CREDENTIAL_BYTES &&
    signaturePublicKey.length === KEY_LENGTH
  );
}

export function isBackup({ extensions }) {
  return extensions.some((each) => each.extensionType === ROLE_EXTENSION && same(each.extensionData, BACKUP_ROLE));
}

export function clientConfig() {
  return {
    keyRetentionConfig: {
      retainKeysForGenerations: KEPT_GENERATIONS,
      // Old epochs are left out where a state is written; ts-mls would go by their number, not their age.
      retainKeysForEpochs: Number.MAX_SAFE_INTEGER,
      maximumForwardRatchetSteps: FORWARD_GENERATIONS,
    },
    // A clock decides whom we add. Whether a commit of others is valid must not depend on it, or two
    // members with different clocks would part ways.
    lifetimeConfig: { maximumTotalLifetime: 0n, validateLifetimeOnReceive: false },
    keyPackageEqualityConfig: defaultKeyPackageEqualityConfig,
    paddingConfig: defaultPaddingConfig,
    authService: { validateCredential: async (credential, key) => isAcceptable(credential, key) },
  };
}

// A welcome's tree, before ts-mls walks through it: an empty node is one byte, and costs a dozen hashes.
export function checkTree(tree) {
  refuseUnless(tree !== undefined, "a welcome with the ratchet tree");
  refuseUnless(tree.length < 2 * MOST_MEMBERS, `a tree of at most ${MOST_MEMBERS} leaves`);
  for (const [index, node] of tree.entries()) {
    if (node?.nodeType === "leaf") checkLeaf(node.leaf);
    if (node?.nodeType === "parent") checkUnmerged(index, node.parent.unmergedLeaves);
  }
}

function checkLeaf({ capabilities, extensions }) {
  const lists = [capabilities.versions, capabilities.ciphersuites, capabilities.extensions, capabilities.proposals, capabilities.credentials];
  const isShort = lists.every((list) => list.length <= MOST_CAPABILITIES) && extensions.length <= MOST_LEAF_EXTENSIONS;
  refuseUnless(isShort, "a leaf with fewer capabilities and extensions");
}

// RFC 9420 §7.1 wants them in order, and §12.4.3.1 below their node.
function checkUnmerged(index, leaves) {
  let below = 0;
  while ((index >> below) & 1) below += 1;
  const reach = (1 << below) - 1;
  const isInOrder = leaves.every((leaf, at) => {
    const isBelow = 2 * leaf >= index - reach && 2 * leaf <= index + reach;
    return isBelow && (at === 0 || leaf > leaves[at - 1]);
  });
  refuseUnless(isInOrder, "unmerged leaves below their node, in order");
}

// Members commit what they propose themselves, at once and inline: additions, removals, new keys of
// their own. Nothing changes the group's parameters, and nobody joins from outside.
export function checkProposals(state, proposals) {
  refuseUnless(proposals.length <= MOST_PROPOSALS, `at most ${MOST_PROPOSALS} proposals`);
  let members = state.ratchetTree.filter((node) => node?.nodeType === "leaf").length;
  for (const { proposalOrRefType, proposal } of proposals) {
    refuseUnless(proposalOrRefType === "proposal", "a commit without proposals by reference");
    const kind = proposal.proposalType;
    refuseUnless(kind === "add" || kind === "remove", "proposals that add or remove members");
    if (kind === "add") checkLeaf(proposal.add.keyPackage.leafNode);
    members += kind === "add" ? 1 : -1;
  }
  refuseUnless(members <= MOST_MEMBERS, `at most ${MOST_MEMBERS} members`);
}

// A key that two nodes of the tree share makes the next welcome useless, so no commit may bring one.
// ts-mls compares the keys that are there already, and not those that come.
export function checkNewKeys(state, proposals, path) {
  const added = proposals.flatMap(({ proposal }) => (proposal.proposalType === "add" ? [proposal.add.keyPackage.leafNode] : []));
  const removed = new Set(proposals.map(({ proposal }) => proposal.remove?.removed));
  const staying = state.ratchetTree.flatMap((node, index) =>
    node?.nodeType === "leaf" && !removed.has(index / 2) ? [node.leaf.signaturePublicKey] : [],
  );
  refuseUnless(areDifferent([...staying, ...added.map((leaf) => leaf.signaturePublicKey)]), "members with keys of their own");
  const present = state.ratchetTree.flatMap((node) => (node === undefined ? [] : [(node.leaf ?? node.parent).hpkePublicKey]));
  const fromPath = path === undefined ? [] : [path.leafNode, ...path.nodes].map((node) => node.hpkePublicKey);
  refuseUnless(areDifferent([...present, ...added.map((leaf) => leaf.hpkePublicKey), ...fromPath]), "new keys for the tree");
}

function areDifferent(keys) {
  return new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size === keys.length;
}

// A backup only reads: whoever stole its file changes no group. A member's key is its installation's: it
// stays as long as the member does, and so does its role.
export function checkPath(state, leaf, path) {
  const before = state.ratchetTree[2 * leaf].leaf;
  refuseUnless(!isBackup(before), "no commit of a backup");
  if (path === undefined) return;
  refuseUnless(!isBackup(path.leafNode), "a committer with the role that it had");
  refuseUnless(path.nodes.length <= MOST_PATH_NODES, `a path of at most ${MOST_PATH_NODES} nodes`);
  checkLeaf(path.leafNode);
  const { credential, signaturePublicKey } = path.leafNode;
  const isSame =
    same(before.signaturePublicKey, signaturePublicKey) &&
    credential.credentialType === "basic" &&
    same(before.credential.identity, credential.identity);
  refuseUnless(isSame, "a committer with the credential and key that it had");
}
