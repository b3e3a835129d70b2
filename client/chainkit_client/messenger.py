"""A messenger: an application's interface to groups and their messages.

A messenger belongs to one installation, with keys and groups in one database. Each ``sync`` reads
and verifies new envelopes, and does waiting work; a program may end at any point without a loss.

::

    async with Messenger(store, engine, chain, gateway) as ann:
        await ann.register(wallet)
        group_id = await ann.create_group(["0x70997970c51812dc3a010c7d01b50e0d17dc79c8"])
        ann.send(group_id, "hello")
        await ann.settle()
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final, Self, TypeVar

from sqlalchemy import Connection

from chainkit.errors import ChainkitError, MalformedData, ReorgTooDeep, StoreError
from chainkit.identity.identifiers import derive_inbox_id
from chainkit.identity.writing import WalletSigner
from chainkit.nodes.gateway import Gateway
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND, Place
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.overview import Group, read_imported_groups, read_shown_groups
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.publishing import advance
from chainkit_client.groups.transcript import Message, unheard
from chainkit_client.history.checking import check_groups
from chainkit_client.history.coverage import Coverage
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.intents.machine import UNFINISHED
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import (
    EngineFailed,
    Installation,
    KeyPackage,
    Member,
    MlsEngine,
)
from chainkit_client.network.chain import Chain
from chainkit_client.network.group_network import GroupNetwork
from chainkit_client.network.group_sync import GroupSync, Round
from chainkit_client.network.inboxes import Inbox, find_inbox
from chainkit_client.network.key_packages import OwnKeyPackages
from chainkit_client.network.members import MemberProofs, members_named
from chainkit_client.network.news import topics_with_news
from chainkit_client.network.payloads import key_package_payload
from chainkit_client.network.registering import registered
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.welcomes import OwnWelcomes
from chainkit_client.storage.evidence import KeptBreach, read_breaches
from chainkit_client.storage.own import insert_installation, read_installation
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import MembershipState
from chainkit_client.storage.store import Store

GROUP_ID_BYTES: Final = 16
"""The length of a group id, as in today's clients."""

REGISTER_SECONDS: Final = 60.0
"""How long nodes may take to serve the update that makes or changes an inbox."""

UNHEARD_SECONDS: Final = 600
"""How long an installation may say nothing after it was added, before that is told."""

_PAUSE_SECONDS: Final = 0.25
_OF_ONE_GROUP: Final = (EngineFailed, MalformedData, ReorgTooDeep)
"""Failures of what a group holds: all other groups are synced before one is raised."""

_T = TypeVar("_T")
ReadGroups = Callable[[Connection], Collection[bytes]]
"""Reads the ids of some groups."""


class NotRegistered(ChainkitError):
    """The database has no installation yet: call ``register`` first."""


class NotSettled(ChainkitError):
    """Some work still waits, and continues with the next ``sync``."""


class Messenger:
    """One installation, used on one event loop."""

    def __init__(
        self,
        store: Store,
        engine: MlsEngine,
        chain: Chain,
        gateway: Gateway,
        retention_days: int | None = None,
    ) -> None:
        """Take the client's database, an MLS engine, the chain and a gateway.

        ``retention_days`` is for how long nodes keep the texts, within the gateway's bounds; None
        for the gateway's policy.
        """
        self._store = store
        self._engine = engine
        self.session = NetworkSession(chain, gateway, store)
        """The connections, for questions that are not of groups."""
        self._key_packages = OwnKeyPackages(self.session, store, engine)
        self._syncs: dict[bytes, GroupSync] = {}
        self._network = GroupNetwork(
            self.session, engine, lambda group: self._sync_of(group).topic, retention_days
        )
        self._welcomes = OwnWelcomes(self.session)
        self._groups: Groups | None = None
        self._proofs = MemberProofs(self.session, store)

    async def __aenter__(self) -> Self:
        """Return the messenger; the end of the block closes the connections."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connections; the caller closes database and engine."""
        await self.session.close()

    # The installation and its inbox.

    @property
    def installation(self) -> Installation:
        """The installation's keys. Raises NotRegistered."""
        with self._store.reading() as connection:
            try:
                return read_installation(connection, self._store.seal)
            except StoreError as error:
                raise NotRegistered("client", "a registered installation", "none yet") from error

    @property
    def inbox_id(self) -> bytes:
        """32 bytes: the installation's inbox. Raises NotRegistered."""
        return bytes.fromhex(self.installation.credential.decode())

    async def register(self, wallet: SigningKey, nonce: int = 0) -> Inbox:
        """Make or join a wallet's inbox, and offer a key package; return the inbox.

        A second call continues where the first one ended. Raises the network's errors, and
        NotSettled where nodes do not serve the inbox in time.
        """
        await self.session.refresh()
        signer = WalletSigner(wallet)
        inbox_id = derive_inbox_id(signer.identifier, nonce)
        installation = self._own_installation(inbox_id)
        inbox = await self._registered(signer, installation, inbox_id, nonce)
        self._proofs.record(Member(-1, installation.credential, installation.public_key), True)
        await self._key_packages.offer(installation)
        return inbox

    async def register_backup(
        self, wallet: SigningKey, backup: Installation, package: KeyPackage
    ) -> None:
        """Put an installation that only reads into the own inbox, and offer its key package."""
        await self.session.refresh()
        await self._registered(WalletSigner(wallet), backup, self.inbox_id)
        payload = key_package_payload(backup.public_key, package.public)
        await self.session.publisher.publish(payload, time.time_ns())

    async def find_inbox(self, name: str) -> Inbox:
        """Return an inbox by its id in hex or by an address, as the chain has it."""
        await self.session.refresh()
        return await find_inbox(self.session, name)

    # The wishes of the user.

    async def create_group(self, names: Sequence[str] = (), group_id: bytes = b"") -> bytes:
        """Make a group with inboxes, by their ids or addresses; return its id, random if empty."""
        group_id = group_id or secrets.token_bytes(GROUP_ID_BYTES)
        installations = await self._installations_of(names)
        self._opened.create(group_id, time.time_ns())
        if installations:
            self._opened.queue(group_id, AddMembers(installations))
        return group_id

    async def add(self, group_id: bytes, names: Sequence[str]) -> int:
        """Queue the addition of inboxes to a group; return the intent's id."""
        return self._opened.queue(group_id, AddMembers(await self._installations_of(names)))

    async def remove(self, group_id: bytes, names: Sequence[str]) -> int:
        """Queue the removal of members from a group; return the intent's id.

        A name is an inbox's id or address, which removes all members that are in this inbox or name
        it; or the key of one installation in hex. Raises NoSuchMember, NoSuchInbox and the
        network's errors.
        """
        members = self.members(group_id)
        leaving: dict[bytes, None] = {}
        for name in names:
            found = await members_named(self.find_inbox, members, name)
            leaving |= dict.fromkeys(each.public_key for each in found)
        return self._opened.queue(group_id, RemoveMembers(tuple(leaving)))

    def update_keys(self, group_id: bytes) -> int:
        """Queue new keys of this installation in a group; return the intent's id."""
        return self._opened.queue(group_id, KeyUpdate())

    def send(self, group_id: bytes, text: str) -> bytes:
        """Queue a message; return its id."""
        return self._opened.send(group_id, text.encode(), time.time_ns())

    def accept(self, group_id: bytes) -> None:
        """Agree to be in a group that somebody else put this installation into."""
        self._opened.decide(group_id, MembershipState.ALLOWED)

    def reject(self, group_id: bytes) -> None:
        """Refuse to be in a group, which is not read any more."""
        self._opened.decide(group_id, MembershipState.REJECTED)

    # The contents of the database.

    def groups(self) -> list[Group]:
        """Return all groups that a person sees, the oldest first."""
        _ = self.installation
        return self._read(read_shown_groups)

    def imported_groups(self) -> list[Group]:
        """Return the groups that only files of other devices know; `messages` reads them."""
        return self._read(read_imported_groups)

    def members(self, group_id: bytes) -> Sequence[Member]:
        """Return the members of a group, one for each installation."""
        return self._opened.view(group_id).members

    async def impostors(self, group_id: bytes) -> list[Member]:
        """Return the members that name an inbox without their installation.

        This client adds no such member, and follows a commit of another client that does. Raises
        the network's errors.
        """
        await self.session.refresh()
        return await self._proofs.impostors(self.members(group_id))

    def messages(self, group_id: bytes) -> list[Message]:
        """Return the transcript of a group."""
        return self._opened.messages(group_id)

    def expired(self, group_id: bytes) -> list[Place]:
        """Return the places of payloads that expired before this client had them."""
        return self._sync_of(group_id).topic.expired()

    def unheard(self, group_id: bytes) -> dict[bytes, int]:
        """Return the installations that were added a while ago and have not written since.

        By installation: the time of its addition, in nanoseconds since 1970. Such an installation
        may not have joined: invite it again, by its removal and addition.
        """
        before_ns = self.session.now_ns() - UNHEARD_SECONDS * NANOSECONDS_PER_SECOND
        return unheard(self.messages(group_id), self.installation.public_key, before_ns)

    def intents(self, group_id: bytes) -> list[Intent]:
        """Return the intents of a group, with their states."""
        return self._opened.intents(group_id)

    def unopened_welcomes(self) -> list[PayloadResult]:
        """Return the welcomes to this installation's key packages that could not be opened."""
        return self._opened.unopened_welcomes()

    def breaches(self) -> list[KeptBreach]:
        """Return the broken rules that this client has seen."""
        return self._read(read_breaches)

    # The work with the network.

    async def sync(self, groups: ReadGroups | None = None) -> dict[bytes, Round]:
        """Read new envelopes, and do waiting work; return the outcome of each group, by group id.

        ``groups`` reads which ones, once new welcomes were taken: all unless it is given. The next
        call continues after NodesSilent, ChainError, EngineFailed, StoreError and the like. The
        failure of one group is raised once all other groups are done.
        """
        await self.session.refresh()
        failure: ChainkitError | None = await self._welcomes.take(self._opened)
        await self.session.ask_for_promised()
        await self._key_packages.keep_offering(self.installation)
        rounds = {}
        wanted = None if groups is None else self._read(groups)
        for group in self._opened.groups():
            is_wanted = wanted is None or group.id in wanted
            if is_wanted and group.membership is not MembershipState.REJECTED:
                try:
                    rounds[group.id] = await self.sync_group(group.id)
                except _OF_ONE_GROUP as error:
                    failure = failure or error
        for group in self._opened.groups():
            if group.id in rounds and group.is_member and group.epoch is not None:
                try:
                    of_group = partial(self.members, group.id)
                    await self._proofs.look(group.id, group.epoch, of_group)
                except _OF_ONE_GROUP as error:
                    failure = failure or error
        for group in self.imported_groups() if wanted is None else ():
            # Nobody comes to these groups or leaves them.
            await self._proofs.look(group.id, 0, list)
        if failure is not None:
            raise failure
        return rounds

    async def catch_up(self) -> dict[bytes, Round]:
        """Sync the groups of which nodes have more than was read; as ``sync``.

        A group costs one question, however long it is. Reorgs are looked for by ``sync`` alone.
        """
        await self.session.refresh()
        topics = {group_topic(each.id): each.id for each in self._opened.groups()}
        found = await topics_with_news(self.session, self._store, topics)
        return await self.sync(lambda _: [topics[each] for each in found])

    async def check_history(self) -> list[Coverage]:
        """Compare imported messages with nodes and chain; `messages` shows what came out.

        Raises the network's errors.
        """
        await self.session.refresh()
        return await check_groups(self.session, self._store)

    async def sync_group(self, group_id: bytes) -> Round:
        """Read one group's new envelopes, and do the group's waiting work."""
        sync = self._sync_of(group_id)
        done = await sync.sync()
        await advance(self._opened, self._network, group_id, time.time_ns())
        return done

    async def settle(self, seconds: float = 60.0, groups: ReadGroups | None = None) -> None:
        """Sync until nothing waits, in all groups or as ``sync``.

        Raises NotSettled, and NodeUnreached at once where there is no connection to the gateway.
        """
        deadline = time.monotonic() + seconds
        while True:
            rounds = await self.sync(groups)
            waiting = [
                intent
                for group in self._opened.groups()
                if groups is None or group.id in rounds
                for intent in self._opened.intents(group.id, UNFINISHED)
            ]
            if not waiting:
                return
            if self._network.unreached is not None:
                raise self._network.unreached
            if time.monotonic() > deadline:
                raise NotSettled("intents", f"none waits after {seconds:g} s", len(waiting))
            await asyncio.sleep(_PAUSE_SECONDS)

    def _read(self, read: Callable[[Connection], _T]) -> _T:
        with self._store.reading() as connection:
            return read(connection)

    @property
    def _opened(self) -> Groups:
        if self._groups is None:
            _ = self.installation
            keys = self.session.keys
            self._groups = Groups(self._store, self._engine, keys.chain_ids, keys.sparse_ids)
        return self._groups

    def _sync_of(self, group_id: bytes) -> GroupSync:
        if group_id not in self._syncs:
            opened = self._opened
            self._syncs[group_id] = GroupSync(self.session, self._store, opened, group_id)
        return self._syncs[group_id]

    async def _installations_of(self, names: Iterable[str]) -> tuple[bytes, ...]:
        inboxes = [await self.find_inbox(each) for each in names]
        found = dict.fromkeys(each for inbox in inboxes for each in inbox.installations)
        return tuple(each for each in found if each != self.installation.public_key)

    async def _registered(
        self, wallet: WalletSigner, installation: Installation, inbox_id: bytes, nonce: int = 0
    ) -> Inbox:
        given = wallet, installation, inbox_id, nonce
        inbox = await registered(self.session, *given, REGISTER_SECONDS)
        if inbox is None:
            expected = f"this installation in it after {REGISTER_SECONDS:g} s"
            raise NotSettled("inbox", expected, "none yet: register again")
        return inbox

    def _own_installation(self, inbox_id: bytes) -> Installation:
        """Return the stored installation, or make and store one."""
        credential = inbox_id.hex().encode()
        try:
            installation = self.installation
        except NotRegistered:
            installation = self._engine.new_installation(credential)
            with self._store.writing() as connection:
                insert_installation(connection, self._store.seal, installation)
        if installation.credential != credential:
            got = f"one of inbox {installation.credential.decode()}"
            raise StoreError("database", f"an installation of inbox {inbox_id.hex()}", got)
        return installation
