"""A group brought up to date: only what the chain has is applied, whoever serves what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.types import BlockReference, Place
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.mls.engine import EngineFailed
from chainkit_client.network.chain import Found, Standing
from chainkit_client.network.group_sync import GroupSync
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.nodes.connection import signer_of
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage.evidence import read_envelope_at
from chainkit_client.storage.schema import PayloadStatus
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Topic
from support import mls, publishes
from support.client.nodes import FakeNode
from support.client.served import KEYS, NODE, NOW_NS, PEER, of_chain
from support.network.originator import Originator


def block(number: int) -> BlockReference:
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
        self.chain = FakeChain()
        self.chain.blocks = lambda: set(map(block, self.mined.values()))
        self.mined: dict[bytes, int] = {}
        """Transaction to its block."""
        self.false: set[bytes] = set()
        self.lookups = 0

    def mine(self, number: int, in_block: int, seconds: float = 0.0) -> None:
        """Mine a commit, and let both nodes serve it."""
        for node in (self.one, self.other):
            data = commit(number, seconds, node.originator)
            node.hold(data)
            self.mined[transaction_of(data)] = in_block

    def reader(self, topic: Topic) -> TopicReader:
        return TopicReader(topic, lambda: [self.one, self.other], lambda: KEYS, lambda: NOW_NS)

    keys = KEYS

    def now_ns(self) -> int:
        return NOW_NS

    def server_of(self, envelope: bytes) -> int:
        signer = signer_of(envelope)
        return next(each for each, key in KEYS.by_node.items() if key == signer)

    def keep(self, breaches: Sequence[Any]) -> None:
        assert not breaches

    async def find(self, envelope: VerifiedEnvelope) -> Found:
        self.lookups += 1
        assert envelope.transaction_hash is not None
        number = self.mined.get(envelope.transaction_hash)
        if number is not None:
            return Found(Standing.CONFIRMED, block(number))
        is_false = envelope.transaction_hash in self.false
        return Found(Standing.FALSE if is_false else Standing.ABSENT)


def transaction_of(data: bytes) -> bytes:
    return parse_originator_envelope(data).transaction_hash


class FakeGroups:
    """Notes what it is told, and goes back where a payload of the chain comes late."""

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
        for each in received:
            self.applied.append(each.place)
            if each.originator_id == 0 and self.held.get(each.place) != each:
                self._drop(each.sequence_id)
            self.held[each.place] = each
        return [Outcome(each.place, PayloadStatus.SUCCEEDED) for each in received]

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


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    store = Store.open(tmp_path / "client.db", "password", cost=2)
    yield Stage(store)
    store.close()


def test_sync__messages_and_commits__are_applied_once_and_kept(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.one.hold(NODE.signed(2, seen={0: 3}))

    first, later = stage.round(), stage.round()

    assert stage.groups.applied == [(0, 3), (100, 2)]
    assert [len(each.outcomes) for each in (first, later)] == [2, 0]
    with stage.store.reading() as connection:
        assert read_envelope_at(connection, (100, 2)) == NODE.signed(2, seen={0: 3})


def test_sync__begun_again__goes_on_with_what_is_kept_and_what_waits(stage: Stage) -> None:
    stage.session.mine(3, 1)
    waits = message(PEER, 8, {100: 7})
    stage.session.one.hold(message(NODE, 2, {0: 3}), waits)
    stage.round()

    # Nodes hide all of it, but for what was missing.
    for node in (stage.session.one, stage.session.other):
        node.held.clear()
    stage.session.other.hold(message(NODE, 7))
    again = stage.again()
    asyncio.run(again.sync())

    assert stage.groups.applied == [(0, 3), (100, 2), (0, 3), (100, 2), (100, 7), (200, 8)]


def test_sync__served_before_the_endpoint_has_it__waits_for_the_chain(stage: Stage) -> None:
    data = commit(3)
    stage.session.one.hold(data)
    stage.session.one.hold(NODE.signed(2, seen={0: 3}))

    first = stage.round()
    assert (first.waits_for_chain, stage.groups.applied) == (True, [])
    stage.session.mined[transaction_of(data)] = 1
    later = stage.round()

    assert (later.waits_for_chain, stage.groups.applied) == (False, [(0, 3), (100, 2)])


@pytest.mark.parametrize("standing", [Standing.ABSENT, Standing.FALSE])
def test_sync__one_node_serves_another_payload_in_its_place__the_chain_decides(
    stage: Stage, standing: Standing
) -> None:
    stage.session.mine(3, 1)
    other = commit(3, seconds=5)
    stage.session.one.hold(other)
    if standing is Standing.FALSE:
        stage.session.false.add(transaction_of(other))

    stage.round()

    assert stage.groups.applied == [(0, 3)]
    with stage.store.reading() as connection:
        kept = read_envelope_at(connection, (0, 3))
    assert kept == commit(3, server=PEER)


def test_sync__the_second_node_serves_another_payload__is_not_read_again(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.other.hold(commit(3, seconds=5, server=PEER))

    stage.round()
    questions = stage.session.one.questions
    stage.round()

    assert stage.groups.applied == [(0, 3)]
    # It asks for all that is not final, and learns that there is no more.
    assert stage.session.one.questions == questions + 2


def test_sync__reorg_takes_a_commit_back__the_group_goes_back_before_it(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.round()

    stage.session.mined = {transaction_of(commit(3, server=each)): 1 for each in (NODE, PEER)}
    stage.session.mine(4, 3, seconds=9)
    found = stage.round()

    assert (found.reorgs, stage.groups.retracted) == (1, [3])
    assert stage.groups.applied == [(0, 3), (0, 4), (0, 3), (0, 4)]


def test_sync__reorg_moves_a_block__nothing_is_taken_back(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.round()
    stage.session.mine(3, 7)

    assert (stage.round().reorgs, stage.groups.retracted) == (0, [])


def test_sync__block_is_final__the_group_forgets_and_it_is_looked_up_no_more(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.session.chain.final_number = 1

    stage.round()
    lookups = stage.session.lookups
    stage.round()

    assert stage.groups.finalized == [3]
    # Its block is still there: so is the payload.
    assert stage.session.lookups == lookups


def test_sync__begun_again__what_is_final_and_applied_is_looked_up_no_more(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.session.chain.final_number = 1
    stage.round()
    before = stage.session.lookups

    asyncio.run(stage.again().sync())

    # The commit that is not final.
    assert stage.session.lookups == before + 1
    assert stage.groups.applied == [(0, 3), (0, 4)] * 2


def test_sync__begun_again__another_payload_below_the_final_one_is_looked_up(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.chain.final_number = 1
    stage.round()
    del stage.groups.held[0, 3]
    before = stage.session.lookups

    asyncio.run(stage.again().sync())

    assert stage.session.lookups > before
    assert stage.groups.applied == [(0, 3)] * 2


def test_sync__reorg_before_the_block_is_final__it_is_taken_back_and_not_final(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)

    def reorg() -> None:
        stage.session.mined.clear()
        stage.session.mine(3, 2, seconds=9)
        stage.session.chain.final_number = 1

    stage.session.chain.meanwhile = reorg
    stage.round()
    assert stage.groups.finalized == []
    stage.session.chain.meanwhile = lambda: None
    stage.round()

    assert (stage.groups.applied, stage.groups.retracted) == ([(0, 3), (0, 3)], [2])
    assert stage.groups.finalized == []


def test_sync__another_process_went_back__nothing_is_final_until_it_is_applied_again(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)

    def go_back() -> None:
        stage.groups.held.clear()
        stage.session.chain.final_number = 1

    stage.session.chain.meanwhile = go_back
    stage.round()
    assert stage.groups.finalized == []
    stage.session.chain.meanwhile = lambda: None
    stage.round()

    assert (stage.groups.applied, stage.groups.finalized) == ([(0, 3), (0, 3)], [3])


def test_sync__commit_is_left_out_between_others__its_successors_are_applied_again(
    stage: Stage,
) -> None:
    for number in (3, 4):
        stage.session.mine(number, number, seconds=number)
    for node in (stage.session.one, stage.session.other):
        node.hidden = {(0, 3)}
    stage.round()
    assert stage.groups.applied == [(0, 4)]

    stage.session.other.hidden = set()
    stage.round()

    assert stage.groups.applied == [(0, 4), (0, 3), (0, 3), (0, 4)]
    assert sorted(stage.groups.held) == [(0, 3), (0, 4)]


def test_sync__a_place_is_doubted__what_a_reorg_put_there_is_read(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=6)
    late = commit(3, seconds=5)
    stage.session.one.hold(late)
    stage.session.other.hidden = {(0, 3)}
    stage.round()

    stage.session.one.hold(commit(3))
    stage.session.mined[transaction_of(commit(3))] = 1
    stage.round()

    assert sorted(stage.groups.held) == [(0, 3), (0, 4)]
    assert stage.groups.applied[-2:] == [(0, 3), (0, 4)]


def test_sync__another_process_took_it_back_before__the_group_stays_where_it_is(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.round()
    stage.session.mined.clear()
    stage.session.mine(3, 2, seconds=9)
    asyncio.run(stage.again().sync())

    stage.round()

    assert (stage.groups.applied, stage.groups.retracted) == ([(0, 3)] * 3, [])


def test_sync__another_process_applied_what_is_gone__the_right_one_is_applied_again(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.round()
    right = stage.groups.held[0, 3]
    stage.groups.held[0, 3] = replace(right, originator_ns=1)

    stage.round()

    assert stage.groups.held[0, 3] == right


def test_sync__engine_fails__all_is_read_and_applied_again(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.groups.failures = 1

    with pytest.raises(EngineFailed):
        stage.round()
    assert stage.groups.applied == []
    stage.round()

    assert stage.groups.applied == [(0, 3)]
