#!/usr/bin/env bash
# Guess: `secp256k1.sign(digest, key)` of @noble/curves signs the same bytes in versions 1 and 2.
# Seen: 1.9.7 signs the digest as it is; 2.4.0 hashes it by SHA-256 first, unless `prehash: false` says otherwise. And
#   its 65 bytes with recovery (`format: "recovered"`) have the recovery bit first, where Ethereum has it last.
# Why it matters: after the upgrade a wallet's signatures still verify within it, and no chain takes them.
. "$(dirname "$0")/lib.sh"
npm_packages @noble/curves@2.4.0 curves1@npm:@noble/curves@1.9.7

cat >sign.mjs <<'E'
import { secp256k1 as one } from "curves1/secp256k1";
import { secp256k1 as two } from "@noble/curves/secp256k1.js";

const key = new Uint8Array(32).fill(1);
const digest = new Uint8Array(32).fill(2);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const before = one.sign(digest, key);
console.log("2 by default is 1:", hex(two.sign(digest, key)) === before.toCompactHex());
console.log("2 without prehash is 1:", hex(two.sign(digest, key, { prehash: false })) === before.toCompactHex());
const recovered = two.sign(digest, key, { prehash: false, format: "recovered" });
console.log("recovery first:", hex(recovered) === `0${before.recovery}${before.toCompactHex()}`);
E
expect node sign.mjs <<'E'
2 by default is 1: false
2 without prehash is 1: true
recovery first: true
E
