// Topics (XIP-49 section 3.3.2): one kind byte, then the identifier.
import { concat, toBeHex } from "ethers";

import { COMMENT, testBytes } from "./primitives.mjs";

export const GROUP_MESSAGE = 0;
export const WELCOME = 1;
export const IDENTITY_UPDATE = 2;
export const KEY_PACKAGE = 3;

const KIND_NAMES = ["GROUP_MESSAGE", "WELCOME", "IDENTITY_UPDATE", "KEY_PACKAGE"];

export function topicOf(kind, identifier) {
  return concat([toBeHex(kind, 1), identifier]);
}

export function topicVectors() {
  const identifiers = [`0x${"00".repeat(32)}`, `0x${"ff".repeat(32)}`, testBytes("topic", 32)];
  const topics = KIND_NAMES.flatMap((name, kind) =>
    identifiers.map((identifier) => ({ kind, name, identifier, topic: topicOf(kind, identifier) })),
  );
  return { comment: `Topic = kind byte || identifier. ${COMMENT}`, topics };
}
