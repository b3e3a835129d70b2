"""Compares the members of groups with their inboxes: members write their names themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from chainkit.errors import ChainError, ChainkitError
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.groups.transcript import account_of, read_people
from chainkit_client.mls.engine import Member
from chainkit_client.network.inboxes import Inbox, is_genuine
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.storage.proved import ProvedMembers, write_proved
from chainkit_client.storage.store import Store

MOST_AT_ONCE: Final = 20
"""Members that one round compares; the next rounds go on."""

PAUSE_SECONDS: Final = 60
"""After so long, members that were not proved are compared again."""


class NoSuchMember(ChainkitError):
    """Nobody in the group has this name."""


async def members_named(
    find_inbox: Callable[[str], Awaitable[Inbox]], members: Sequence[Member], name: str
) -> list[Member]:
    """Return the members that an inbox's id, an address or an installation's key names.

    Raises NoSuchMember, and what ``find_inbox`` raises.
    """
    found = [each for each in members if each.public_key.hex() == name]
    if not found:
        inbox = await find_inbox(name)
        account = inbox.id.hex().encode()
        found = [
            each
            for each in members
            if each.credential == account or each.public_key in inbox.installations
        ]
    if not found:
        raise NoSuchMember("NAME", "an inbox or installation in the group", name)
    return found


class MemberProofs:
    """Proves members of one client's groups; for one event loop."""

    def __init__(self, session: NetworkSession, store: Store) -> None:
        """Take the session, and the client's database."""
        self._session = session
        self._store = store
        self._looked: dict[bytes, tuple[int | None, int]] = {}
        """The epoch in which a group was compared, and the time from which it is again."""

    async def look(
        self, group_id: bytes, epoch: int | None, members: Callable[[], Sequence[Member]]
    ) -> None:
        """Compare members that are not proved, where the epoch is new, or after a while."""
        before, again_ns = self._looked.get(group_id, (None, 0))
        now_ns = self._session.now_ns()
        if before == epoch and now_ns < again_ns:
            return
        now = await asyncio.to_thread(members)
        open_ones = self._not_proved(group_id, now, has_transcript=before is None)
        rest = await self._prove(open_ones[:MOST_AT_ONCE])
        is_more = len(open_ones) > MOST_AT_ONCE
        pause_ns = 0 if is_more else PAUSE_SECONDS * NANOSECONDS_PER_SECOND
        after_ns = now_ns + pause_ns if rest or is_more else 2**63
        self._looked[group_id] = None if is_more else epoch, after_ns

    async def impostors(self, members: Iterable[Member]) -> list[Member]:
        """Return the members that their inboxes lack now. Raises NodesSilent and ChainError."""
        found = []
        for each in members:
            is_proved = await is_genuine(self._session, each)
            self.record(each, is_proved)
            if not is_proved:
                found.append(each)
        return found

    def record(self, member: Member, is_proved: bool) -> None:
        """Store whether a member is in the inbox that it names."""
        account = account_of(member.credential)
        with self._store.writing() as connection:
            write_proved(connection, self._store.seal, member.public_key, account, is_proved)

    async def _prove(self, members: Iterable[Member]) -> list[Member]:
        """Return the members that could not be proved."""
        members = list(members)
        try:
            return await self.impostors(members)
        except (NodesSilent, ChainError):
            return members

    def _not_proved(
        self, group_id: bytes, members: Sequence[Member], has_transcript: bool
    ) -> list[Member]:
        with self._store.reading() as connection:
            seal = self._store.seal
            people = read_people(connection, seal, group_id) if has_transcript else []
            proved = ProvedMembers(connection, seal)
        known = {(each.public_key, each.credential): each for each in (*people, *members)}
        return [
            each
            for each in known.values()
            if not proved.has(each.public_key, account_of(each.credential))
        ]
