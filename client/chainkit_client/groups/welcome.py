"""The form of a welcome: the MLS welcome, and the hash of its commit; version 1.

A joining installation cannot read the commit that adds the installation, and a reorg may take that
commit back. So the welcome names the commit by its hash, and the installation joins at the
commit's place on the chain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from chainkit.errors import MalformedData
from chainkit.types import HASH_LENGTH

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Welcome:
    """An invitation to a group."""

    commit_hash: bytes | None
    """keccak256 of the commit's MLSMessage; None where the commit was not published (§3.3.7)."""
    mls: bytes = field(repr=False)
    """The MLSMessage with the Welcome."""

    def encoded(self) -> bytes:
        """Return the bytes that are sent."""
        commit_hash = self.commit_hash or b""
        return bytes([VERSION, len(commit_hash)]) + commit_hash + self.mls


def parse_welcome(data: bytes) -> Welcome:
    """Take a welcome apart. Raises MalformedData."""
    if len(data) < 2 or data[0] != VERSION:
        raise MalformedData("welcome", f"version {VERSION}", f"0x{data[:1].hex()}")
    if data[1] not in (0, HASH_LENGTH) or len(data) < 2 + data[1]:
        raise MalformedData("welcome", f"a hash of 0 or {HASH_LENGTH} bytes", data[1])
    return Welcome(data[2 : 2 + data[1]] or None, data[2 + data[1] :])
