#!/usr/bin/env bash
# Guess: reading a key that a protobuf map lacks gives the default and leaves the message as it is.
# Seen: with protobuf 7.36.2 for Python, `message.map[key]` adds the entry, so that the message has other bytes after it
#   was read. `get` and `in` add nothing.
# Why it matters: a look at a cursor changes what is signed, hashed or sent next. Read maps with `get`.
. "$(dirname "$0")/lib.sh"
pip_packages protobuf==7.36.2

cat >read.py <<'E'
from google.protobuf import descriptor_pb2, message_factory

file = descriptor_pb2.FileDescriptorProto(name="cursor.proto", syntax="proto3")
cursor = file.message_type.add(name="Cursor")
entry = cursor.nested_type.add(name="SeenEntry")
entry.options.map_entry = True
entry.field.add(name="key", number=1, type=13, label=1)
entry.field.add(name="value", number=2, type=4, label=1)
cursor.field.add(name="seen", number=1, type=11, label=3, type_name=".Cursor.SeenEntry")
message = message_factory.GetMessages([file])["Cursor"]()
print("before", message.SerializeToString().hex())
print("get", message.seen.get(9), message.SerializeToString().hex())
print("in", 9 in message.seen, message.SerializeToString().hex())
print("[9]", message.seen[9], message.SerializeToString().hex())
E
expect python read.py <<'E'
before 
get None 
in False 
[9] 0 0a0408091000
E
