"""Writes the descriptors of ClientEnvelope and of all its imports, for protobuf-es.

python tools/write_descriptor_set.py FILE; see tools/vectors/protobuf_es.mjs.
"""

import sys
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

from chainkit.protocol.proto import envelopes_pb2


def descriptor_set(file: Any) -> bytes:
    """Return a serialized FileDescriptorSet, each file behind the files that it imports."""
    found: dict[str, Any] = {}

    def add(one: Any) -> None:
        for each in one.dependencies:
            add(each)
        found.setdefault(one.name, one)

    add(file)
    written = descriptor_pb2.FileDescriptorSet()
    for each in found.values():
        each.CopyToProto(written.file.add())
    return written.SerializeToString()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(descriptor_set(envelopes_pb2.DESCRIPTOR))
