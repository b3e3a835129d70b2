"""Protobuf messages of XIP-49 section 3, generated from the .proto files in this folder.

Do not edit ``*_pb2.py`` or ``*_pb2.pyi``: ``tools/generate_protobuf.py`` writes them.
"""

from google.protobuf.internal import api_implementation

from chainkit.errors import ConfigurationError

# The runtimes differ in which messages are well-formed (depth of groups, text that is no UTF-8),
# and every node must serve and quarantine the same payloads.
if api_implementation.Type() != "upb":
    raise ConfigurationError(
        "protobuf runtime",
        "upb (unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION)",
        api_implementation.Type(),
    )
