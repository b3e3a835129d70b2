// A state as bytes: what ts-mls writes, with a checksum.
import { decodeGroupState, encodeGroupState } from "ts-mls/clientState.js";
import { withChecksum, withoutChecksum } from "./checked.mjs";
import { StateBroken } from "./refusals.mjs";
import { clientConfig } from "./rules.mjs";

export function writeState(state, pastEpochs) {
  return withChecksum(encodeGroupState(withoutOldEpochs(state, pastEpochs)));
}

export function readState(data, pastEpochs) {
  const content = new Uint8Array(withoutChecksum(data));
  let decoded;
  try {
    decoded = decodeGroupState(content, 0);
  } catch {
    decoded = undefined;
  }
  if (decoded === undefined || decoded[1] !== content.length) throw new StateBroken("not a group's state");
  return { ...decoded[0], clientConfig: clientConfig(pastEpochs) };
}

// ts-mls keeps a number of epochs whatever their age, and all of them where the number is 0.
function withoutOldEpochs(state, pastEpochs) {
  const oldest = state.groupContext.epoch - pastEpochs;
  const kept = [...state.historicalReceiverData].filter(([epoch]) => epoch >= oldest);
  return { ...state, historicalReceiverData: new Map(kept) };
}
