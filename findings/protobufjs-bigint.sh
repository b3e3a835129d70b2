#!/usr/bin/env bash
# Guess: protobufjs writes a BigInt into a uint64 field, or throws.
# Seen: protobufjs 8.8.1 writes 0 for a BigInt that `create` or a plain object has, without an error. `fromObject` takes
#   the BigInt, and `verify` names the field.
# Why it matters: chain libraries (ethers, viem) answer heights, nonces and amounts as BigInt: each becomes 0 on the wire.
. "$(dirname "$0")/lib.sh"
npm_packages protobufjs@8.8.1

cat >write.mjs <<'E'
import protobuf from "protobufjs";

const Block = protobuf.parse('syntax = "proto3"; message Block { uint64 number = 1; }').root.lookupType("Block");
const hex = (message) => Buffer.from(Block.encode(message).finish()).toString("hex");
console.log("plain object", hex({ number: 300n }));
console.log("create", hex(Block.create({ number: 300n })));
console.log("fromObject", hex(Block.fromObject({ number: 300n })));
console.log("verify", Block.verify({ number: 300n }));
E
expect node write.mjs <<'E'
plain object 0800
create 0800
fromObject 08ac02
verify number: integer|Long expected
E
