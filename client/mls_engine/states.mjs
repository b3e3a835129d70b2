// A state as bytes: fields with a checksum. The keys of each past epoch, with its tree, are a field of their
// own, which is read only where a message of that epoch comes: they are most of a state.
import { decodeGroupStateWithoutTree, encodeGroupStateWithoutTree } from "ts-mls/clientState.js";
import { encode } from "ts-mls/codec/tlsEncoder.js";
import { decodeEpochReceiverData, epochReceiverDataEncoder } from "ts-mls/epochReceiverData.js";
import { decodeRatchetTree, ratchetTreeEncoder } from "ts-mls/ratchetTree.js";
import { withChecksum, withoutChecksum } from "./checked.mjs";
import { decodeFields, encodeFields, number, readNumber } from "./fields.mjs";
import { StateBroken } from "./refusals.mjs";
import { clientConfig } from "./rules.mjs";

const encodeTree = encode(ratchetTreeEncoder);
const encodeKeys = encode(epochReceiverDataEncoder);
// A tree as it was read: messages change none, and a commit makes another.
const bytesOfTree = new WeakMap();

export function writeState(state, pastEpochs) {
  const oldest = state.groupContext.epoch - pastEpochs;
  const kept = [...state.historicalReceiverData].filter(([epoch]) => epoch >= oldest);
  const current = encodeGroupStateWithoutTree({ ...state, historicalReceiverData: new Map() });
  const past = kept.flatMap(([epoch, keys]) => [number(epoch), keys.unread ?? encodeKeys(keys)]);
  return withChecksum(encodeFields([current, bytesOfTree.get(state.ratchetTree) ?? encodeTree(state.ratchetTree), ...past]));
}

export function readState(data) {
  const content = withoutChecksum(data);
  try {
    const [current, tree, ...past] = decodeFields(content).map((field) => new Uint8Array(field));
    const ratchetTree = whole(decodeRatchetTree, tree);
    bytesOfTree.set(ratchetTree, tree);
    const state = whole(decodeGroupStateWithoutTree(ratchetTree), current);
    const historicalReceiverData = new Map();
    for (let at = 0; at < past.length; at += 2)
      historicalReceiverData.set(readNumber(Buffer.from(past[at])), { unread: past[at + 1] });
    return { ...state, historicalReceiverData, clientConfig: clientConfig() };
  } catch {
    throw new StateBroken("not a group's state");
  }
}

// The keys of a past epoch, undefined where they are not kept.
export function pastKeys(state, epoch) {
  const keys = state.historicalReceiverData.get(epoch);
  return keys?.unread === undefined ? keys : whole(decodeEpochReceiverData, keys.unread);
}

function whole(decode, content) {
  const decoded = decode(content, 0);
  if (decoded === undefined || decoded[1] !== content.length) throw new StateBroken("not a group's state");
  return decoded[0];
}
