#!/usr/bin/env bash
# Guess: a message that a reader with an older schema decodes and encodes again keeps the fields that this schema lacks,
#   as Google's libraries do.
# Seen: protobufjs 8.8.1 drops them without an error; protobuf 7.36.2 for Python keeps them.
# Why it matters: a relay or a signer on protobufjs turns a newer message into another one with another hash, and its
#   signature no longer fits. Pass the bytes on.
. "$(dirname "$0")/lib.sh"
pip_packages protobuf==7.36.2
npm_packages protobufjs@8.8.1

cat >again.mjs <<'E'
import protobuf from "protobufjs";

const Old = protobuf.parse('syntax = "proto3"; message Old { uint32 id = 1; }').root.lookupType("Old");
console.log("protobufjs", Buffer.from(Old.encode(Old.decode(Buffer.from("08051007", "hex"))).finish()).toString("hex"));
E
cat >again.py <<'E'
from google.protobuf import descriptor_pb2, message_factory

file = descriptor_pb2.FileDescriptorProto(name="old.proto", syntax="proto3")
file.message_type.add(name="Old").field.add(name="id", number=1, type=13, label=1)
Old = message_factory.GetMessages([file])["Old"]
print("python", Old.FromString(bytes.fromhex("08051007")).SerializeToString().hex())
E
expect bash -c 'node again.mjs; python again.py' <<'E'
protobufjs 0805
python 08051007
E
