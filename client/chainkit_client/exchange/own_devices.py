"""The person's other devices: who they are now, and the MLS group in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, select

from chainkit_client.intents.machine import UNFINISHED
from chainkit_client.messenger import Messenger
from chainkit_client.mls.engine import Member
from chainkit_client.storage import schema
from chainkit_client.storage.own import read_installation
from chainkit_client.storage.store import Store
from chainkit_client.storage.sync_groups import forget_group, read_silent_groups


class OwnDevices:
    """A messenger, as requests between a person's own devices need it."""

    def __init__(self, messenger: Messenger, store: Store, end_engine: Callable[[], None]) -> None:
        """Take the messenger, the database of both, and how to end the MLS engine's child."""
        self._messenger = messenger
        self._store = store
        self._end_engine = end_engine

    @property
    def itself(self) -> bytes:
        """32 bytes: this device's key."""
        with self._store.reading() as connection:
            return read_installation(connection, self._store.seal).public_key

    @property
    def inbox_id(self) -> bytes:
        """32 bytes."""
        return self._messenger.inbox_id

    async def installations(self) -> frozenset[bytes]:
        """Return the devices of the inbox now, by the chain: none that was revoked (H1, H10).

        Raises the network's errors.
        """
        inbox = await self._messenger.find_inbox(self.inbox_id.hex())
        return frozenset(inbox.installations)

    async def make_group(self, group_id: bytes) -> None:
        """Make a group of all devices, or go on where it was interrupted."""
        name = self.inbox_id.hex()
        if not self.has_group(group_id):
            await self._messenger.create_group([name], group_id)
        elif not self._messenger.intents(group_id):
            await self._messenger.add(group_id, [name])

    def has_group(self, group_id: bytes) -> bool:
        """Return whether a group was made."""
        with self._store.reading() as connection:
            is_it = schema.groups.c.id == group_id
            return connection.scalar(select(schema.groups.c.id).where(is_it)) is not None

    def members(self, group_id: bytes) -> Sequence[Member]:
        """Return all that read a group."""
        return self._messenger.members(group_id)

    def backups(self, group_id: bytes) -> frozenset[bytes]:
        """Return the members of a group that only read; none of a group that is deleted."""
        if not self.has_group(group_id):
            return frozenset()
        return frozenset(each.public_key for each in self.members(group_id) if each.is_backup)

    def send(self, group_id: bytes, content: bytes) -> None:
        """Queue a message to all members of a group."""
        self._messenger.accept(group_id)
        self._messenger.send(group_id, content.decode())

    def is_busy(self, group_id: bytes) -> bool:
        """Return whether a message or a change of a group waits."""
        return any(each.state in UNFINISHED for each in self._messenger.intents(group_id))

    async def sync(self) -> None:
        """Read what devices sent each other, and nothing of groups in which people talk.

        Raises the network's errors.
        """
        await self._messenger.sync(read_silent_groups)

    async def settle(self) -> None:
        """Send what waits. Raises the network's errors, and NotSettled."""
        await self._messenger.settle(groups=read_silent_groups)

    def rest(self) -> None:
        """Give back the memory of the MLS engine, which starts again with its next call."""
        self._end_engine()

    @staticmethod
    def forget(connection: Connection, group_id: bytes) -> None:
        """Delete all that a group holds; it is not read any more."""
        forget_group(connection, group_id)
