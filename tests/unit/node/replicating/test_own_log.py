"""When a node may originate: what other nodes hold of its log is known, or a record says it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chainkit.protocol.methods import QUERY_ENVELOPES
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.service.refusals import NotReady
from chainkit.types import BlockReference, Node
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.peers.client import PeerSilent
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.own_log import OwnLog
from support.network.originator import MemoryLog, Originator
from support.network.simulation.loop import run

OWN = Originator(100)
LOG = OWN.log(5)


@dataclass
class World:
    """A node, and others that hold of its log what a test says, or do not answer."""

    others: dict[int, Sequence[bytes] | None] = field(default_factory=dict)
    held: MemoryLog = field(default_factory=MemoryLog)
    asked: list[int] = field(default_factory=list)
    disabled: set[int] = field(default_factory=set)

    def listing(self) -> Listing:
        nodes = {
            each: Node(each, b"", "http://x", each not in self.disabled) for each in self.others
        }
        nodes[OWN.node_id] = Node(OWN.node_id, OWN.key.public_key, "http://own", True)
        return Listing(nodes, OWN.node_id, BlockReference(1, bytes(32)))

    def connect(self, node: Node) -> Any:
        return Peer(self, node.node_id)

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        received = [OWN.received(each) for each in data]
        new = [each for each in received if self.held.at(each.sequence_id) is None]
        for each in new:
            self.held.store(each)
        return Taken(len(new), 0, len(received) - len(new), 0, 0)

    def last_id(self, originator_id: int) -> int:
        last = self.held.last()
        return last.sequence_id if last else 0


@dataclass
class Peer:
    world: World
    node_id: int

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        assert method == QUERY_ENVELOPES
        self.world.asked.append(self.node_id)
        held = self.world.others[self.node_id]
        if held is None:
            raise PeerSilent(f"node {self.node_id}", "an answer", "none")
        query = message_api_pb2.QueryEnvelopesRequest.FromString(request).query
        after = query.last_seen.node_id_to_sequence_id[OWN.node_id]
        await asyncio.sleep(0.01)
        return written_envelopes(held[after : after + 2])

    async def close(self) -> None:
        """There is nothing to close."""


def played(world: World, record: SequenceRecord | None = None, seconds: float = 3.0) -> OwnLog:
    """Run for a while of virtual time."""
    own_log = OwnLog(world.listing, world.connect, world, record)  # type: ignore[arg-type]

    async def play() -> None:
        task = asyncio.ensure_future(own_log.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(play())
    return own_log


@pytest.mark.conforms("N7")
def test_own_log__another_node_holds_more__is_taken_back_first() -> None:
    world = World({200: LOG})
    world.take(LOG[:1], Source(OWN.node_id, OWN.key.public_key, False))

    played(world).check()

    assert world.held.envelopes() == LOG


def test_own_log__two_nodes_are_asked_at_once__neither_is_called_one_that_repeats(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World({200: LOG, 300: LOG})

    own_log = played(world)

    own_log.check()
    assert world.held.envelopes() == LOG
    assert not [each for each in caplog.records if "could not be asked" in each.getMessage()]


def test_own_log__no_other_node__may_originate_at_once() -> None:
    played(World()).check()


@pytest.mark.conforms("N7")
def test_own_log__only_a_disabled_node_holds_it__is_taken_back_from_there() -> None:
    world = World({200: LOG}, disabled={200})

    played(world).check()

    assert world.held.envelopes() == LOG


def test_own_log__only_disabled_others_that_are_silent__are_not_waited_for() -> None:
    world = World({200: None}, disabled={200})

    played(world, seconds=30.0).check()

    # Once it is known, only enabled nodes are asked again.
    assert world.asked == [200]


def test_own_log__a_disabled_node_answers_and_the_enabled_is_silent__waits() -> None:
    world = World({200: [], 300: None}, disabled={200})

    with pytest.raises(NotReady):
        played(world).check()


@pytest.mark.conforms("N7")
def test_own_log__nobody_answers_and_there_is_no_record__is_not_ready() -> None:
    with pytest.raises(
        NotReady, match=r"own log: expected an answer of another node.* got none yet of node 200"
    ):
        played(World({200: None, 300: None})).check()


def test_own_log__one_of_two_answers__may_originate_and_asks_the_other_again() -> None:
    world = World({200: [], 300: None})

    played(world, seconds=30.0).check()

    assert world.asked.count(200) == 1
    assert world.asked.count(300) > 2


def test_own_log__nobody_answers_and_the_record_knows_the_node__may_originate(
    tmp_path: Path,
) -> None:
    record = SequenceRecord(tmp_path / "record")
    record.advance(OWN.node_id, 5)
    world = World({200: None})
    world.take(LOG, Source(OWN.node_id, OWN.key.public_key, False))
    played(world, record).check()
    record.close()


@pytest.mark.parametrize("others", [{200: None}, {200: LOG[:3]}], ids=["silent", "behind"])
def test_own_log__database_is_older_than_the_record__waits_and_says_so_once(
    tmp_path: Path, others: dict[int, Sequence[bytes] | None], caplog: pytest.LogCaptureFixture
) -> None:
    record = SequenceRecord(tmp_path / "record")
    record.advance(OWN.node_id, 5)
    world = World(others)
    world.take(LOG[:2], Source(OWN.node_id, OWN.key.public_key, False))

    with pytest.raises(NotReady, match="expected envelopes up to sequence id 5"):
        played(world, record).check()

    record.close()
    errors = [each for each in caplog.records if each.levelname == "ERROR"]
    assert len(errors) == 1
    assert "originates" not in caplog.text


def test_own_log__the_record_is_another_nodes__waits_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = SequenceRecord(tmp_path / "record")
    record.advance(300, 5)

    with pytest.raises(NotReady, match="expected node 100, got node 300"):
        played(World({200: []}), record).check()

    record.close()
    assert "originates" not in caplog.text


def test_own_log__another_node_gets_what_is_lacking__originates_then(tmp_path: Path) -> None:
    record = SequenceRecord(tmp_path / "record")
    record.advance(OWN.node_id, 5)
    late: list[bytes] = LOG[:3]
    world = World({200: late})
    world.take(LOG[:2], Source(OWN.node_id, OWN.key.public_key, False))
    own_log = OwnLog(world.listing, world.connect, world, record)  # type: ignore[arg-type]

    async def play() -> None:
        task = asyncio.ensure_future(own_log.run())
        await asyncio.sleep(3.0)
        with pytest.raises(NotReady, match="expected envelopes up to sequence id 5"):
            own_log.check()
        world.others[200] = LOG
        await asyncio.sleep(3.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(play())
    own_log.check()
    record.close()
    assert world.held.envelopes() == LOG


@pytest.mark.conforms("N7")
def test_own_log__database_goes_back_while_the_node_runs__all_are_asked_again() -> None:
    world = World({200: LOG})
    own_log = OwnLog(world.listing, world.connect, world, None)  # type: ignore[arg-type]

    async def play() -> None:
        task = asyncio.ensure_future(own_log.run())
        await asyncio.sleep(3.0)
        own_log.check()
        world.held = MemoryLog()
        world.others[200] = LOG[:3]
        own_log.fell_back(5)
        await asyncio.sleep(3.0)
        with pytest.raises(NotReady, match=r"sequence id 5, which it has signed, got up to 3"):
            own_log.check()
        world.others[200] = LOG
        await asyncio.sleep(3.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(play())
    own_log.check()
    assert world.held.envelopes() == LOG


def test_own_log__the_record_is_new__does_not_help(tmp_path: Path) -> None:
    record = SequenceRecord(tmp_path / "record")
    with pytest.raises(NotReady):
        played(World({200: None}), record).check()
    record.close()


def test_own_log__the_operator_gave_envelopes_up__may_originate(tmp_path: Path) -> None:
    record = SequenceRecord(tmp_path / "record", resume_after=42)
    played(World({200: None}), record).check()
    record.close()


def test_own_log__the_operator_gave_envelopes_up__says_the_id_that_it_goes_on_after(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record = SequenceRecord(tmp_path / "record", resume_after=42)

    with caplog.at_level("INFO"):
        played(World({200: None}), record)

    assert "node 100 originates after sequence id 42" in caplog.text
    record.close()


def test_own_log__what_was_given_up_is_behind__counts_no_more_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside a new record, an option that stayed would let the node sign ids again."""
    record = SequenceRecord(tmp_path / "record", resume_after=3)
    world = World({200: None})
    world.take(LOG, Source(OWN.node_id, OWN.key.public_key, False))

    with pytest.raises(NotReady, match="expected an answer of another node"):
        played(world, record).check()
    world.others[200] = LOG
    played(world, record).check()

    assert caplog.text.count("--resume-after 3 is not needed any more") == 1
    record.close()


def test_own_log__the_operator_gave_up_more_than_others_believe__says_so(tmp_path: Path) -> None:
    record = SequenceRecord(tmp_path / "record", resume_after=10**7)
    with pytest.raises(NotReady, match="--resume-after: expected at most 1000000,"):
        played(World({200: None}), record).check()
    record.close()


def test_own_log__a_node_that_sends_the_same_again__does_not_hold_it_up() -> None:
    class Stuck(World):
        def take(self, data: Sequence[bytes], source: Source) -> Taken:
            return Taken(0, 0, len(data), 0, 0)

    world = Stuck({200: LOG})

    with pytest.raises(NotReady):
        played(world).check()
    assert len(world.asked) < 10
