"""Writes envelopes as bytes: protobuf, in one form that never changes.

The signed bytes of nodes are compared byte by byte, and protobuf does not promise the same bytes: a
library may write other bytes in its next version (protobuf.dev, "Proto Serialization Is Not
Canonical"). So this module writes the form itself: fields in the order of their numbers, each
integer in the shortest form, and no field that has its default. The libraries write the same form
today, and all of them read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from chainkit.signatures import SIGNATURE_LENGTH
from chainkit.types import HASH_LENGTH

# A tag is a field's number and, in the lowest three bits, how its value is written.
ORIGINATOR_TAG: Final = 0x08
"""``UnsignedOriginatorEnvelope.originator_node_id``."""
SEQUENCE_TAG: Final = 0x10
"""``UnsignedOriginatorEnvelope.originator_sequence_id``."""
TIME_TAG: Final = 0x18
"""``UnsignedOriginatorEnvelope.originator_ns``."""
PAYER_TAG: Final = 0x22
"""``UnsignedOriginatorEnvelope.payer_envelope``."""
EXPIRY_TAG: Final = 0x38
"""``UnsignedOriginatorEnvelope.expiry_unixtime``."""
CLIENT_TAG: Final = 0x0A
"""``PayerEnvelope.unsigned_client_envelope``."""
TARGET_TAG: Final = 0x18
"""``PayerEnvelope.target_originator``."""
RETENTION_TAG: Final = 0x20
"""``PayerEnvelope.message_retention_days``."""
RETENTION_SIGNATURE_HEAD: Final = bytes([0xC2, 0x3E, SIGNATURE_LENGTH])
"""Tag and length before the 65 bytes of ``PayerEnvelope.retention_signature``."""
UNSIGNED_TAG: Final = 0x0A
"""``OriginatorEnvelope.unsigned_originator_envelope``."""
ENVELOPES_TAG: Final = 0x0A
"""``envelopes`` of a node's answers."""

_SIGNATURE: Final = bytes([0x0A, SIGNATURE_LENGTH])
SIGNATURE_HEAD: Final = bytes([0x12, len(_SIGNATURE) + SIGNATURE_LENGTH]) + _SIGNATURE
"""Tags and lengths before the 65 bytes of ``BlockchainProof.node_signature``, and of the two other
signatures that are a message's second field: ``PayerEnvelope.payer_signature`` and
``OriginatorEnvelope.originator_signature``."""

_HASH: Final = bytes([0x0A, HASH_LENGTH])
_PROOF_LENGTH: Final = len(_HASH) + HASH_LENGTH + len(SIGNATURE_HEAD) + SIGNATURE_LENGTH
PROOF_HEAD: Final = bytes([0x1A, _PROOF_LENGTH]) + _HASH
"""Tags and lengths before the 32 bytes of ``OriginatorEnvelope.blockchain_proof``'s hash."""

_UINT64_MAXIMUM: Final = 2**64 - 1
_BYTES: Final = tuple(bytes([value]) for value in range(256))


def integer_field(tag: int, value: int) -> bytes:
    """Write an integer, or nothing for 0. Raises ValueError for one that is no uint64."""
    return _BYTES[tag] + _varint(value) if value else b""


def bytes_field(tag: int, value: bytes) -> bytes:
    """Write bytes with their length in front, or nothing where there are none."""
    return _head(tag, len(value)) + value if value else b""


def repeated_bytes(tag: int, values: Iterable[bytes]) -> bytes:
    """Write a field that is repeated, also values of no bytes."""
    return b"".join(part for value in values for part in (_head(tag, len(value)), value))


# Cached: payloads of one kind share a few lengths.
@lru_cache(maxsize=1024)
def _head(tag: int, length: int) -> bytes:
    return _BYTES[tag] + _varint(length)


def _varint(value: int) -> bytes:
    # Seven bits to a byte, the lowest first; all but the last have the eighth bit.
    if not 0 <= value <= _UINT64_MAXIMUM:
        raise ValueError(f"expected an integer from 0 to {_UINT64_MAXIMUM}, got {value}")
    written = b""
    while value > 0x7F:
        written += _BYTES[value & 0x7F | 0x80]
        value >>= 7
    return written + _BYTES[value]
