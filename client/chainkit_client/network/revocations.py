"""Members of groups whose own inbox revoked them: each is removed by the next commit (XIP-46)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from chainkit.errors import ChainError, MalformedData
from chainkit.identity.identifiers import parse_inbox_id
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.mls.engine import Member
from chainkit_client.network.inboxes import inbox_of
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import NodesSilent

MOST_INBOXES: Final = 20
"""Inboxes that are read before one commit: of a larger group another part each time."""

PAUSE_SECONDS: Final = 60
"""An inbox is not read again for so long: a commit that lost is built again at once."""


class Revocations:
    """Reads the inboxes of members, as a commit needs them; for one event loop."""

    def __init__(self, session: NetworkSession) -> None:
        """Take the session."""
        self._session = session
        self._looked_ns: dict[bytes, int] = {}

    async def of(self, members: Sequence[Member]) -> frozenset[bytes]:
        """Return the keys of members that the inbox which they name had, and revoked.

        An inbox that nobody answers for now revokes nothing. An installation that an inbox never
        had is none of these: nodes may leave its addition out, and nobody signed its removal.
        """
        by_inbox = _by_inbox(members)
        due = self._next(list(by_inbox))
        # At once: a node that gives no answer holds up a commit for one round, not for twenty.
        revoked = await asyncio.gather(*map(self._revoked_by, due))
        return frozenset().union(
            *(by_inbox[each] & gone for each, gone in zip(due, revoked, strict=True))
        )

    async def _revoked_by(self, inbox_id: bytes) -> frozenset[bytes]:
        try:
            inbox = await inbox_of(self._session, inbox_id)
        except (NodesSilent, ChainError):
            return frozenset()
        self._looked_ns[inbox_id] = self._session.now_ns()
        return inbox.revoked if inbox else frozenset()

    def _next(self, inbox_ids: Sequence[bytes]) -> Sequence[bytes]:
        """Return the inboxes to read now, from a place on that another time begins elsewhere."""
        now_ns = self._session.now_ns()
        since_ns = now_ns - PAUSE_SECONDS * NANOSECONDS_PER_SECOND
        due = [each for each in inbox_ids if self._looked_ns.get(each, since_ns) <= since_ns]
        first = now_ns // NANOSECONDS_PER_SECOND % len(due) if len(due) > MOST_INBOXES else 0
        return [*due[first:], *due[:first]][:MOST_INBOXES]


def _by_inbox(members: Sequence[Member]) -> Mapping[bytes, set[bytes]]:
    found: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for each in members:
        # A member writes its inbox itself: another text names none.
        with suppress(MalformedData, UnicodeDecodeError):
            found[parse_inbox_id(each.credential.decode())].add(each.public_key)
    return found
