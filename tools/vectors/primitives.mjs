// Bytes, test keys and signatures. Hexadecimal strings carry 0x throughout.
import { SigningKey, concat, dataSlice, keccak256, toBeHex, toUtf8Bytes } from "ethers";

export const COMMENT =
  "Computed by tools/vectors/generate.mjs in Node, with none of chainkit's own code. " +
  "Bytes are hexadecimal with 0x; 64-bit and 256-bit integers are decimal strings.";

export const MAX_UINT64 = "18446744073709551615";

// `length` bytes that look random and are the same in every run.
export function testBytes(label, length) {
  const blocks = [];
  for (let index = 0; index * 32 < length; index += 1) {
    blocks.push(keccak256(concat([toUtf8Bytes(label), toBeHex(index, 4)])));
  }
  return length === 0 ? "0x" : dataSlice(concat(blocks), 0, length);
}

// A key for tests only: anybody can compute it.
export function testKey(name) {
  return new SigningKey(keccak256(toUtf8Bytes(`chainkit test key ${name}`)));
}

// R || S || V over keccak256(label || parts), with V in {0, 1}, low S and an RFC 6979 nonce.
export function signLabelled(key, label, ...parts) {
  const digest = keccak256(concat([toUtf8Bytes(label), ...parts]));
  const { r, s, yParity } = key.sign(digest);
  return { digest, signature: concat([r, s, toBeHex(yParity, 1)]) };
}
