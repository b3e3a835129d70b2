"""Ranges of an originator's sequence ids, and the digests by which two nodes compare them.

Sequence ids count from 1. A leaf (level 0) is 64 consecutive ids; a range of each level above is
16 ranges of the level below. Range ``number`` of a level begins behind ``number`` ranges of its
width, so both nodes mean the same ids by it, whatever they hold.

A range's parts are its ids, or the ranges of the level below. Each part has a digest of 20 bytes:

- of an id: the first bytes of what the originator signed; zeros where the node has no envelope; and
  one fixed digest where it knows two different ones, so that nodes that know of it agree;
- of a range: the hash of its parts' digests; zeros where it has none.

Ids above ``through``, which both nodes agree on, count as absent. A range's parts are given up to
the one that contains ``through``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from chainkit.protocol.originated_envelope import originator_digest
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256

DIGEST_LENGTH: Final = 20
"""Bytes of a digest. An originator chooses its envelopes: two with one digest would take 2^80
tries."""
LEAF_IDS: Final = 64
FAN_OUT: Final = 16
MOST_LEVEL: Final = 15
"""Level of a range that contains every id of 63 bits."""
MOST_ASKED: Final = 128
"""Most ranges of one request: the answer has at most 160 KiB."""
ABSENT: Final = bytes(DIGEST_LENGTH)
"""Digest of an id without an envelope, and of a range without any."""

_RANGE_LABEL: Final = b"range|"
_DISPUTED_LABEL: Final = b"disputed|"


class LogRange(NamedTuple):
    """A range of sequence ids that both nodes name alike."""

    level: int
    """0 of a leaf, to MOST_LEVEL."""
    number: int
    """Number of the range, from 0: how many ranges of its level precede it."""

    @property
    def first(self) -> int:
        """The range's first sequence id."""
        return self.number * width(self.level) + 1

    @property
    def last(self) -> int:
        """The range's last sequence id."""
        return (self.number + 1) * width(self.level)

    def part_count(self, through: int) -> int:
        """Return how many parts of the range begin up to ``through``."""
        covered = min(through, self.last) - self.first + 1
        return max(-(-covered // _part_width(self.level)), 0)

    def part_ids(self, place: int) -> range:
        """Return the sequence ids of one part of the range; places count from 0."""
        wide = _part_width(self.level)
        first = self.first + place * wide
        return range(first, first + wide)

    def child(self, place: int) -> LogRange:
        """Return one part of a range above the leaves, as a range."""
        return LogRange(self.level - 1, self.number * FAN_OUT + place)


class RangeContent(NamedTuple):
    """A node's view of a range."""

    digests: bytes
    """The parts' digests, concatenated in order."""
    expired: int = 0
    """Bit n is set where part n has expired: an id that is no longer served, stored or not; or a
    range whose ids up to ``through`` have all expired, and none is stored."""


def width(level: int) -> int:
    """Return how many sequence ids a range of a level has."""
    ids: int = LEAF_IDS * FAN_OUT**level
    return ids


def root_of(through: int) -> LogRange:
    """Return the smallest range that begins with id 1 and contains ``through``."""
    level = 0
    while width(level) < through:
        level += 1
    return LogRange(level, 0)


def envelope_digest(envelope: bytes) -> bytes:
    """Return the digest of an id by its OriginatorEnvelope.

    The digest leaves out the signature, because a payload has several valid signatures. Bytes that
    are no OriginatorEnvelope have a digest that no other node has: damage is found as a difference.
    """
    try:
        parsed = envelopes_pb2.OriginatorEnvelope.FromString(envelope)
    except DecodeError:
        return keccak256(envelope)[:DIGEST_LENGTH]
    return originator_digest(parsed.unsigned_originator_envelope)[:DIGEST_LENGTH]


def disputed_digest(originator_id: int, sequence_id: int) -> bytes:
    """Return the digest of an id under which its originator signed two different envelopes."""
    numbers = originator_id.to_bytes(8) + sequence_id.to_bytes(8)
    return keccak256(_DISPUTED_LABEL + numbers)[:DIGEST_LENGTH]


def range_digest(level: int, digests: bytes) -> bytes:
    """Return the digest of a range, from its parts' digests up to the last part that is present."""
    if not any(digests):
        return ABSENT
    parts = LEAF_IDS if level == 0 else FAN_OUT
    # The same number of bytes, whether absent parts were written or left out.
    whole = digests.ljust(parts * DIGEST_LENGTH, b"\0")
    return keccak256(_RANGE_LABEL + bytes([level]) + whole)[:DIGEST_LENGTH]


def split(digests: bytes) -> list[bytes]:
    """Return the digests of a range's parts one by one."""
    starts = range(0, len(digests), DIGEST_LENGTH)
    return [digests[start : start + DIGEST_LENGTH] for start in starts]


def _part_width(level: int) -> int:
    return 1 if level == 0 else width(level - 1)
