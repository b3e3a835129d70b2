// Secrets that the engine hands to its caller: a mark, a checksum, and the content. The checksum tells a damaged
// database from a message that cannot be read: only the message may be given up.
import * as crypto from "node:crypto";
import { StateBroken } from "./refusals.mjs";

const MARK = Buffer.from("ckmls001");
const CHECKSUM_LENGTH = 32;

export function checksum(content) {
  return crypto.createHash("sha256").update(content).digest();
}

export function withChecksum(content) {
  return Buffer.concat([MARK, checksum(content), content]);
}

export function withoutChecksum(data) {
  const content = data.subarray(MARK.length + CHECKSUM_LENGTH);
  const sum = data.subarray(MARK.length, MARK.length + CHECKSUM_LENGTH);
  if (!data.subarray(0, MARK.length).equals(MARK) || !sum.equals(checksum(content)))
    throw new StateBroken("not what this engine wrote, or damaged");
  return content;
}
