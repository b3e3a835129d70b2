"""Payloads that are applied together: the database's rows of all payloads are read at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Self

from sqlalchemy import Connection

from chainkit.types import Place
from chainkit_client.groups.payload import Payload
from chainkit_client.intents import rows
from chainkit_client.intents.rows import Attempt
from chainkit_client.storage import payloads
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.sealing import Seal

MOST_PAYLOADS: Final = 500
"""Payloads of one page: SQLite bounds the values of a statement."""


class Page:
    """Some payloads of one topic, in their order, with the stored results and own payloads."""

    def __init__(
        self,
        received: Sequence[Payload],
        known: dict[Place, PayloadResult],
        own: dict[bytes, Attempt],
    ) -> None:
        """Use ``read``."""
        self.known = known
        """Results of the payloads that were read before."""
        self.own = own
        """Payloads that this installation built, by payload hash."""
        self._next = {each.place: following for each, following in pairwise(received)}

    @classmethod
    def read(cls, connection: Connection, seal: Seal, received: Sequence[Payload]) -> Self:
        """Look up at most MOST_PAYLOADS payloads."""
        assert 0 < len(received) <= MOST_PAYLOADS
        known = payloads.read_results_at(
            connection, received[0].topic, [each.place for each in received]
        )
        own = rows.read_attempts(connection, seal, [each.payload_hash for each in received])
        return cls(received, known, own)

    def other_after(self, payload: Payload) -> Payload | None:
        """Return the next payload, None unless it is another member's and was not read before."""
        following = self._next.get(payload.place)
        if following is None or following.place in self.known:
            return None
        return None if following.payload_hash in self.own else following
