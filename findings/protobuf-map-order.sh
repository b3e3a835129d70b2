#!/usr/bin/env bash
# Guess: `SerializeToString(deterministic=True)` of one version of protobuf for Python writes one message as the same
#   bytes, and integer keys of a map in ascending order.
# Seen: protobuf 7.36.2 writes them descending with its C core (upb), and ascending with its own pure-Python backend,
#   which PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION selects.
# Why it matters: "deterministic" holds within one backend. Hash and sign the bytes that came, never bytes written again.
. "$(dirname "$0")/lib.sh"
pip_packages protobuf==7.36.2

cat >write.py <<'E'
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.internal import api_implementation

file = descriptor_pb2.FileDescriptorProto(name="cursor.proto", syntax="proto3")
cursor = file.message_type.add(name="Cursor")
entry = cursor.nested_type.add(name="SeenEntry")
entry.options.map_entry = True
entry.field.add(name="key", number=1, type=13, label=1)
entry.field.add(name="value", number=2, type=4, label=1)
cursor.field.add(name="seen", number=1, type=11, label=3, type_name=".Cursor.SeenEntry")
message = message_factory.GetMessages([file])["Cursor"]()
for key in (1, 2, 3):
    message.seen[key] = key
print(api_implementation.Type(), message.SerializeToString(deterministic=True).hex(" ", -6))
E
cat >both.sh <<'E'
python write.py
PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python python -W ignore write.py
E
expect bash both.sh <<'E'
upb 0a0408031003 0a0408021002 0a0408011001
python 0a0408011001 0a0408021002 0a0408031003
E
