"""Payloads of the chain that were verified before: they come in each round until they are final."""

from __future__ import annotations

from typing import Final

from chainkit_client.reading.verified import Keys, Read, read_envelope

MOST_READS: Final = 1_000
"""The first are forgotten, and verified again where they come."""
MOST_BYTES: Final = 64 << 10
"""The longest one that is kept: a commit takes some thousand."""


class KnownReads:
    """Verifies envelopes, and those of the chain once for each node and key; for one thread."""

    def __init__(self) -> None:
        """Begin with none."""
        self._reads: dict[tuple[int, bytes | None, bytes], Read] = {}

    def read(self, data: bytes, server_id: int, keys: Keys) -> Read:
        """As ``read_envelope``. Raises MalformedData."""
        place = server_id, keys.by_node.get(server_id), data
        found = self._reads.get(place)
        if found is None:
            found = read_envelope(data, server_id, keys)
            if found.received is None and len(data) <= MOST_BYTES:
                self._reads[place] = found
                if len(self._reads) > MOST_READS:
                    del self._reads[next(iter(self._reads))]
        return found
