// Uncompressed secp256k1 points, as the registry takes them (XIP-49 section 3.1.1), and what it
// must refuse: 0x04 || X || Y, both coordinates below the field prime, on y^2 = x^3 + 7.
import { SigningKey, concat, dataSlice, toBeHex, toBigInt } from "ethers";

import { COMMENT, testKey } from "./primitives.mjs";

const PRIME = 2n ** 256n - 2n ** 32n - 977n;

const WRONG_LENGTH = "length is not 65 bytes";
const WRONG_PREFIX = "prefix is not 0x04";
const LARGE_X = "x is not below the field prime";
const LARGE_Y = "y is not below the field prime";
const OFF_CURVE = "not on the curve";

const modulo = (value) => ((value % PRIME) + PRIME) % PRIME;
const isOnCurve = (x, y) => modulo(y * y - x * x * x - 7n) === 0n;

function power(base, exponent) {
  let result = 1n;
  for (
    let square = modulo(base);
    exponent > 0n;
    exponent >>= 1n, square = modulo(square * square)
  ) {
    if (exponent & 1n) result = modulo(result * square);
  }
  return result;
}

function point(x, y, prefix = "0x04") {
  return concat([prefix, toBeHex(x, 32), toBeHex(y, 32)]);
}

// Only a coordinate below 2^256 - PRIME has a second name of 32 bytes, so small ones are searched.
function pointWithSmallX() {
  for (let x = 1n; ; x += 1n) {
    const y = power(x * x * x + 7n, (PRIME + 1n) / 4n);
    if (isOnCurve(x, y)) return { x, y };
  }
}

// A third root modulo PRIME, which is 7 modulo 9, is the power (PRIME + 2) / 9, where there is one.
function pointWithSmallY() {
  for (let y = 1n; ; y += 1n) {
    const x = power(y * y - 7n, (PRIME + 2n) / 9n);
    if (isOnCurve(x, y)) return { x, y };
  }
}

function coordinates(key) {
  return { x: toBigInt(dataSlice(key, 1, 33)), y: toBigInt(dataSlice(key, 33, 65)) };
}

function validKeys(good) {
  const { x, y } = coordinates(good);
  const generator = new SigningKey(toBeHex(1, 32)).publicKey;
  const last = new SigningKey(toBeHex(2n ** 255n, 32)).publicKey;
  const [smallX, smallY] = [pointWithSmallX(), pointWithSmallY()];
  return [
    ["test key a", good],
    ["test key b", testKey("b").publicKey],
    ["generator of the group", generator],
    ["key 2^255", last],
    ["negated y", point(x, PRIME - y)],
    ["small x", point(smallX.x, smallX.y)],
    ["small y", point(smallY.x, smallY.y)],
  ];
}

function invalidKeys(good) {
  const { x, y } = coordinates(good);
  const [smallX, smallY] = [pointWithSmallX(), pointWithSmallY()];
  const hybrid = y % 2n === 0n ? "0x06" : "0x07";
  return [
    ["empty", "0x", WRONG_LENGTH],
    ["prefix only", "0x04", WRONG_LENGTH],
    ["compressed", SigningKey.computePublicKey(good, true), WRONG_LENGTH],
    ["no prefix", dataSlice(good, 1), WRONG_LENGTH],
    ["one byte more", concat([good, "0x00"]), WRONG_LENGTH],
    ["prefix 0x00", point(x, y, "0x00"), WRONG_PREFIX],
    ["prefix 0x02", point(x, y, "0x02"), WRONG_PREFIX],
    ["prefix 0x06", point(x, y, "0x06"), WRONG_PREFIX],
    ["hybrid form with the right parity", point(x, y, hybrid), WRONG_PREFIX],
    ["y changed by one", point(x, y ^ 1n), OFF_CURVE],
    ["x and y exchanged", point(y, x), OFF_CURVE],
    ["zero point", point(0n, 0n), OFF_CURVE],
    ["x 0", point(0n, y), OFF_CURVE],
    ["y 0", point(x, 0n), OFF_CURVE],
    ["x plus the prime", point(smallX.x + PRIME, smallX.y), LARGE_X],
    ["x is the prime", point(PRIME, y), LARGE_X],
    ["y plus the prime", point(smallY.x, smallY.y + PRIME), LARGE_Y],
    ["y is the prime", point(x, PRIME), LARGE_Y],
    ["largest words", point(2n ** 256n - 1n, 2n ** 256n - 1n), LARGE_X],
  ];
}

export function publicKeyVectors() {
  const good = testKey("a").publicKey;
  const keys = [...validKeys(good).map((entry) => [...entry, null]), ...invalidKeys(good)];
  for (const [name, key, reason] of keys) {
    const { x, y } = reason === null || reason === OFF_CURVE ? coordinates(key) : {};
    if (x !== undefined && isOnCurve(x, y) !== (reason === null)) {
      throw new Error(`${name}: the curve equation disagrees`);
    }
  }
  return {
    comment: `Points by ethers, the curve equation by integers modulo the field prime. ${COMMENT}`,
    keys: keys.map(([name, key, reason]) => ({ name, key, valid: reason === null, reason })),
  };
}
