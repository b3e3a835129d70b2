"""A group's sync on two nodes in memory and a chain, with groups that record their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from chainkit.errors import ChainError, StoreError
from chainkit.nodes.connection import signer_of
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.types import BlockReference, Place
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.mls.engine import EngineFailed
from chainkit_client.network.chain_status import ChainStatus, Found
from chainkit_client.network.group_sync import GroupSync
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage.schema import PayloadStatus
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Followed, Topic
from support import mls, publishes
from support.client.nodes import FakeNode
from support.client.served import KEYS, NODE, NOW_NS, PEER, of_chain
from support.network.originator import Originator


def block(number: int) -> BlockReference:
    """A block of a height."""
    return BlockReference(number, bytes([number]) * 32)


def commit(number: int, seconds: float = 0.0, server: Any = NODE) -> bytes:
    """A commit of the chain in a place, as a node vouches for it; another time is another one."""
    message = mls.private_message(publishes.GROUP_ID, mls.COMMIT, number, authenticated_data=b"")
    return of_chain(number, seconds, publishes.group_message(message), server)


def message(node: Originator, number: int, seen: Mapping[int, int] | None = None) -> bytes:
    """A message with words of its own."""
    words = mls.private_message(publishes.GROUP_ID, epoch=number, authenticated_data=b"")
    client = publishes.group_message(words, seen=seen)
    return node.signed(number, number, publishes.paid(client, node.node_id))


class FakeChain:
    """The chain, as far as the sync asks it for blocks."""

    def __init__(self) -> None:
        self.final_number = 0
        self.meanwhile: Callable[[], None] = lambda: None
        """Happens when the final block is asked for."""
        self.blocks: Callable[[], set[BlockReference]] = set

    def final(self) -> BlockReference:
        self.meanwhile()
        return block(self.final_number)

    def still_there(self, blocks: Iterable[BlockReference]) -> frozenset[BlockReference]:
        return frozenset(self.blocks() & set(blocks))


class FakeSession:
    """Two nodes, and a chain that has some payloads."""

    def __init__(self) -> None:
        self.one, self.other = FakeNode(NODE), FakeNode(PEER)
        self.keys = KEYS
        self.chain = FakeChain()
        self.chain.blocks = lambda: set(map(block, self.mined.values()))
        self.mined: dict[bytes, int] = {}
        """Transaction to its block."""
        self.false: set[bytes] = set()
        self.store_error: StoreError | None = None
        self.lookups = 0
        self.lookups_until_silent: int | None = None
        """So many are answered; None where all are."""

    def mine(self, number: int, in_block: int, seconds: float = 0.0) -> None:
        """Mine a commit, and let both nodes serve it."""
        for node in (self.one, self.other):
            data = commit(number, seconds, node.originator)
            node.hold(data)
            self.mined[transaction_of(data)] = in_block

    def reader(self, topic: Topic) -> TopicReader:
        nodes = [self.one, self.other]
        return TopicReader(topic, lambda: nodes, lambda: self.keys, lambda: NOW_NS)

    async def read(self, reader: TopicReader) -> Followed:
        found = await reader.read()
        self.keep(found.breaches)
        return found

    def now_ns(self) -> int:
        return NOW_NS

    def server_of(self, envelope: bytes) -> int:
        signer = signer_of(envelope)
        return next(each for each, key in KEYS.by_node.items() if key == signer)

    def keep(self, breaches: Sequence[Any]) -> None:
        assert not breaches
        if self.store_error is not None:
            raise self.store_error

    async def find(self, envelope: VerifiedEnvelope) -> Found:
        if self.lookups == self.lookups_until_silent:
            raise ChainError("endpoint", "an answer", "none")
        self.lookups += 1
        assert envelope.transaction_hash is not None
        number = self.mined.get(envelope.transaction_hash)
        if number is not None:
            return Found(ChainStatus.CONFIRMED, block(number))
        is_false = envelope.transaction_hash in self.false
        return Found(ChainStatus.FALSE if is_false else ChainStatus.ABSENT)


def transaction_of(data: bytes) -> bytes:
    """The transaction that a payload of the chain names."""
    return parse_originator_envelope(data).transaction_hash


class FakeGroups:
    """Records its calls, and goes back where a payload of the chain comes late."""

    def __init__(self) -> None:
        self.applied: list[Place] = []
        self.retracted: list[int] = []
        self.finalized: list[int] = []
        self.held: dict[Place, Payload] = {}
        self.failures = 0

    def apply(self, group_id: bytes, received: Sequence[Payload]) -> list[Outcome]:
        assert group_id == publishes.GROUP_ID
        if self.failures:
            self.failures -= 1
            raise EngineFailed("engine", "an answer", "none")
        outcomes = []
        for each in received:
            self.applied.append(each.place)
            is_repeated = self.held.get(each.place) == each
            outcomes.append(Outcome(each.place, PayloadStatus.SUCCEEDED, is_repeated=is_repeated))
            if each.originator_id == 0 and self.held.get(each.place) != each:
                self._drop(each.sequence_id)
            self.held[each.place] = each
        return outcomes

    def take_back(self, group_id: bytes, gone: Sequence[Payload]) -> bool:
        found = [each.sequence_id for each in gone if self.held.get(each.place) == each]
        if found:
            self.retracted.append(min(found) - 1)
            self._drop(min(found))
        return bool(found)

    def have_applied(self, received: Sequence[Payload]) -> bool:
        return all(self.held.get(each.place) == each for each in received)

    def finalize(self, group_id: bytes, sequence_id: int) -> None:
        self.finalized.append(sequence_id)

    def last_final(self, group_id: bytes) -> int:
        return max(self.finalized, default=0)

    def _drop(self, first: int) -> None:
        for place in [each for each in self.held if each[0] == 0 and each[1] >= first]:
            del self.held[place]


class Stage:
    """A client of one group."""

    def __init__(self, store: Store) -> None:
        self.session, self.groups = FakeSession(), FakeGroups()
        self.store = store
        self.sync = self.again()

    def again(self) -> GroupSync:
        """As after a restart of the program."""
        return GroupSync(
            cast(Any, self.session), self.store, cast(Any, self.groups), publishes.GROUP_ID
        )

    def round(self) -> Any:
        return asyncio.run(self.sync.sync())
