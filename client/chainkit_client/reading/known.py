"""A cache of verified payloads of the chain, which each round serves until they are final."""

from __future__ import annotations

from typing import Final

from chainkit_client.reading.verified import Keys, Read, read_envelope

MOST_READS: Final = 1_000
"""Payloads in the cache; beyond this number the oldest are forgotten."""
MOST_BYTES: Final = 64 << 10
"""The longest payload in the cache; a commit takes some thousand bytes."""


class KnownReads:
    """Verifies envelopes, payloads of the chain once for each node and key; for one thread."""

    def __init__(self) -> None:
        """Begin with an empty cache."""
        self._reads: dict[tuple[int, bytes | None, bytes], Read] = {}

    def read(self, data: bytes, server_id: int, keys: Keys) -> Read:
        """Verify an envelope, as ``read_envelope``. Raises MalformedData."""
        place = server_id, keys.by_node.get(server_id), data
        found = self._reads.get(place)
        if found is None:
            found = read_envelope(data, server_id, keys)
            if found.received is None and len(data) <= MOST_BYTES:
                self._reads[place] = found
                if len(self._reads) > MOST_READS:
                    del self._reads[next(iter(self._reads))]
        return found
