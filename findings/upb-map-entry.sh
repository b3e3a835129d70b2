#!/usr/bin/env bash
# Guess: protobuf readers of one schema see the same entries of a map in the same bytes; a field that the schema lacks
#   is skipped, also within an entry.
# Seen: protobuf 7.36.2 for Python (upb) leaves the whole entry out of the map when the entry has a field of a number
#   that is unknown, and keeps it as an unknown field. @bufbuild/protobuf 2.17.0 reads the entry.
# Why it matters: two honest readers of one signed message see two cursors. Judge the bytes before you trust a map.
. "$(dirname "$0")/lib.sh"
pip_packages protobuf==7.36.2
npm_packages @bufbuild/protobuf@2.17.0

cat >schema.py <<'E'
from google.protobuf import descriptor_pb2

file = descriptor_pb2.FileDescriptorProto(name="cursor.proto", package="finding", syntax="proto3")
cursor = file.message_type.add(name="Cursor")
entry = cursor.nested_type.add(name="SeenEntry")
entry.options.map_entry = True
entry.field.add(name="key", json_name="key", number=1, type=13, label=1)
entry.field.add(name="value", json_name="value", number=2, type=4, label=1)
cursor.field.add(name="seen", json_name="seen", number=1, type=11, label=3, type_name=".finding.Cursor.SeenEntry")
open("schema.bin", "wb").write(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
E
cat >read.py <<'E'
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.internal import api_implementation

files = descriptor_pb2.FileDescriptorSet.FromString(open("schema.bin", "rb").read()).file
cursor = message_factory.GetMessages(files)["finding.Cursor"].FromString(bytes.fromhex("0a06080510071801"))
print(api_implementation.Type(), {k: v for k, v in cursor.seen.items()})
E
cat >read.mjs <<'E'
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const set = fromBinary(FileDescriptorSetSchema, readFileSync("schema.bin"));
const schema = createFileRegistry(set).getMessage("finding.Cursor");
console.log("protobuf-es", fromBinary(schema, Buffer.from("0a06080510071801", "hex")).seen);
E
cat >all.sh <<'E'
python schema.py
python read.py
node read.mjs
E
expect bash all.sh <<'E'
upb {}
protobuf-es { '5': 7n }
E
