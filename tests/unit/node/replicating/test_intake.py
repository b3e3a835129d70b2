"""The intake on a real database: what is stored, told, kept as evidence, and refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.misbehavior.received_batch import BatchOutcome
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.log_ranges import disputed_digest, envelope_digest, split
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.replicating import intake
from chainkit_node.replicating.intake import Intake, Source, Taken
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import GapRow, GapState, read_filled_after
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.range_digests import store_ranges
from support import publishes
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

OWN = Identity.of(FakeChain().deployment, SigningKey(b"\5" * 32).public_key)
NODE = Originator(200)
LOG = NODE.log(8)
OWN_ID = 100
DIRECT = Source(NODE.node_id, NODE.key.public_key, is_direct=True)


class Receiver:
    """An intake, and what it told of."""

    def __init__(self, path: Path) -> None:
        self.store = open_store(path, OWN)
        self.reports: list[tuple[int, Misbehavior, Sequence[bytes]]] = []
        self.new: list[bytes] = []
        self.late: list[bytes] = []
        self.stored_ones: list[ReceivedEnvelope] = []
        self.knows_own = True
        self.ungiven = UngivenIds(lambda: OWN_ID, lambda: self.knows_own)
        self.intake = Intake(
            self.store,
            self,
            lambda: BEGIN_NS + 60 * SECOND_NS,
            self.told,
            self.stored_ones.extend,
            self.ungiven,
        )

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        self.reports.append((node_id, misbehavior, envelopes))

    def told(self, new: Sequence[StoredEnvelope], late: Sequence[StoredEnvelope]) -> None:
        self.new += [each.envelope for each in new]
        self.late += [each.envelope for each in late]

    def stored(self) -> list[bytes]:
        query = select(envelopes.c.envelope).order_by(envelopes.c.sequence_id)
        with self.store.reading() as connection:
            return list(connection.scalars(query))

    def gaps(self) -> list[GapRow]:
        query = select(schema.gaps).order_by(schema.gaps.c.first_id)
        with self.store.reading() as connection:
            return [GapRow._make(row) for row in connection.execute(query)]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    made = Receiver(tmp_path / "node.db")
    yield made
    made.store.close()


@pytest.mark.conforms("N27", "N28", "N31")
def test_take__a_log_in_two_overlapping_batches__each_is_stored_and_told_once(
    receiver: Receiver,
) -> None:
    assert receiver.intake.take(LOG[:5], DIRECT) == Taken(5, 0, 0, 0, 0)
    assert receiver.intake.last_id(NODE.node_id) == 5

    assert receiver.intake.take(LOG[3:], DIRECT) == Taken(3, 0, 2, 0, 0)

    assert receiver.stored() == receiver.new == LOG
    assert [each.envelope for each in receiver.stored_ones] == LOG
    assert receiver.late == []
    assert receiver.reports == []


def test_take__a_gap_that_is_filled_later__is_told_apart_and_remembered(
    receiver: Receiver,
) -> None:
    receiver.intake.take([*LOG[:2], *LOG[5:]], DIRECT)
    [gap] = receiver.gaps()
    assert (gap.first_id, gap.last_id, gap.state) == (3, 5, GapState.OMITTED)
    assert [each[1] for each in receiver.reports] == [Misbehavior.OUT_OF_ORDER]

    receiver.intake.take([LOG[3]], Source(NODE.node_id, NODE.key.public_key, is_direct=False))

    assert receiver.late == [LOG[3]]
    unfilled = [each for each in receiver.gaps() if each.state != GapState.FILLED]
    assert [(each.first_id, each.last_id) for each in unfilled] == [(3, 3), (5, 5)]
    with receiver.store.reading() as connection:
        [filled] = read_filled_after(connection, gap.changed_ns)
    assert (filled.first_id, filled.last_id) == (4, 4)


def test_take__another_one_under_an_id__the_first_stays_and_the_other_is_kept(
    receiver: Receiver,
) -> None:
    receiver.intake.take(LOG, DIRECT)
    other, third = NODE.signed(3, 3.5), NODE.signed(3, 3.6)

    for each in (other, third):
        assert receiver.intake.take([each], DIRECT) == Taken(0, 0, 0, 1, 0)

    assert receiver.stored() == LOG
    with receiver.store.reading() as connection:
        kept = list(connection.scalars(select(schema.disputed_envelopes.c.envelope)))
    assert kept == [other]
    assert receiver.reports[0] == (200, Misbehavior.DUPLICATE_SEQUENCE_ID, (other, LOG[2]))


def test_take__below_the_end_of_the_log__renews_the_digests_of_its_range(
    receiver: Receiver,
) -> None:
    log = [NODE.signed(each) for each in range(1, 66)]
    receiver.intake.take([*log[:2], *log[3:]], DIRECT)
    with receiver.store.writing() as connection:
        assert store_ranges(connection, NODE.node_id, most=10) == 1
    digests = []

    for below_the_end in (log[2], NODE.signed(3, 3.5)):
        receiver.intake.take([below_the_end], DIRECT)
        with receiver.store.reading() as connection:
            [leaf] = connection.scalars(select(schema.range_digests.c.digests))
        digests.append(split(leaf)[2])

    assert digests == [envelope_digest(log[2]), disputed_digest(NODE.node_id, 3)]


def test_take__what_was_pruned_here__is_not_stored_again(receiver: Receiver) -> None:
    receiver.intake.take([*LOG[:2], *LOG[4:]], DIRECT)
    reports = list(receiver.reports)
    with receiver.store.writing() as connection:
        PRUNED.add(connection, NODE.node_id, [3])

    taken = receiver.intake.take([LOG[2], NODE.signed(3, 3.5), LOG[3]], DIRECT)

    assert taken == Taken(0, 1, 2, 0, 0)
    assert receiver.stored() == [*LOG[:2], *LOG[3:]]
    assert receiver.reports == reports


@pytest.mark.parametrize(
    "stranger",
    [
        Originator(200, SigningKey(b"\6" * 32)).signed(3),
        Originator(300, NODE.key).signed(3),
        b"no envelope",
        b"",
    ],
)
def test_take__what_the_originator_did_not_sign__nothing_of_the_batch_is_stored(
    receiver: Receiver, stranger: bytes
) -> None:
    with pytest.raises((MalformedEnvelope, InvalidSignature)):
        receiver.intake.take([*LOG[:2], stranger, *LOG[2:]], DIRECT)

    assert receiver.stored() == receiver.new == []
    assert receiver.reports == []


def test_take__bytes_that_a_peer_added__are_not_stored(receiver: Receiver) -> None:
    # Field 15, which nobody knows, behind what the originator wrote.
    receiver.intake.take([each + b"\x7a\x03abc" for each in LOG], DIRECT)

    assert receiver.stored() == LOG


def test_take__bytes_that_are_stored__are_not_verified_again(receiver: Receiver) -> None:
    receiver.intake.take(LOG[:6], DIRECT)
    stranger = Source(NODE.node_id, SigningKey(b"\6" * 32).public_key, is_direct=False)

    assert receiver.intake.take(LOG[1:6], stranger) == Taken(0, 0, 5, 0, 0)
    with pytest.raises(InvalidSignature):
        receiver.intake.take(LOG[1:7], stranger)

    assert receiver.stored() == LOG[:6]


@pytest.mark.parametrize("place", [0, 19, 20, 39])
def test_take__many_at_once__a_forged_one_in_either_half_refuses_all(
    receiver: Receiver, place: int
) -> None:
    many = NODE.log(40)
    forged = list(many)
    forged[place] = Originator(200, SigningKey(b"\6" * 32)).signed(place + 1)

    with pytest.raises(InvalidSignature):
        receiver.intake.take(forged, DIRECT)
    assert receiver.stored() == []

    assert receiver.intake.take(many, DIRECT) == Taken(40, 0, 0, 0, 0)
    assert receiver.stored() == receiver.new == many


def test_take__the_same_from_two_threads__each_is_stored_and_told_once(receiver: Receiver) -> None:
    many = NODE.log(60)

    with ThreadPoolExecutor(2) as threads:
        taken = list(threads.map(lambda _: receiver.intake.take(many, DIRECT), range(2)))

    assert sorted(each.new for each in taken) == [0, 60]
    assert receiver.stored() == receiver.new == many


def test_take__every_second_id_then_all_others__no_transaction_changes_more_than_a_hundred(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = NODE.log(240, seconds=0.001)
    sizes: list[int] = []
    judge = intake.compare_batch

    def counted(received: Sequence[ReceivedEnvelope], *arguments: Any) -> BatchOutcome:
        sizes.append(len(received))
        return judge(received, *arguments)

    monkeypatch.setattr(intake, "compare_batch", counted)
    relayed = Source(NODE.node_id, NODE.key.public_key, is_direct=False)

    receiver.intake.take(log[1::2], relayed)
    receiver.intake.take(log[0::2], relayed)

    assert sizes == [100, 20] * 2
    assert receiver.stored() == log


def test_take__an_id_beyond_all_logs__is_reported_and_leaves_no_row_and_no_gap(
    receiver: Receiver,
) -> None:
    receiver.intake.take(LOG, DIRECT)
    far = NODE.signed(2**62, 9.0)

    assert receiver.intake.take([far], DIRECT) == Taken(0, 0, 0, 0, 0, far=1)

    assert [receiver.stored(), receiver.gaps()] == [LOG, []]
    assert receiver.reports == [(200, Misbehavior.OUT_OF_ORDER, (far, LOG[-1]))]


TOPIC = TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)
OWN_NODE = Originator(OWN_ID, SigningKey(b"\5" * 32))
FROM_OWN = Source(OWN_ID, OWN_NODE.key.public_key, is_direct=False)


@pytest.mark.conforms("N48")
def test_take__names_an_id_that_this_node_has_not_given__is_reported_and_no_cycle_is_taken(
    receiver: Receiver,
) -> None:
    receiver.intake.take(OWN_NODE.log(4), FROM_OWN)
    honest, liar = NODE.signed(1, 1.0, seen={OWN_ID: 4}), NODE.signed(2, 2.0, seen={OWN_ID: 5})

    receiver.intake.take([honest, liar], DIRECT)

    assert receiver.reports == [(NODE.node_id, Misbehavior.CAUSAL_ORDERING, (liar,))]
    assert receiver.ungiven.named_on(TOPIC, 4) == {NODE.node_id: 2}
    assert receiver.ungiven.named_on(TopicKind.WELCOME.topic(bytes(32)), 4) == {}
    # Once this node has given the id, nothing that it signs later is in a cycle.
    assert receiver.ungiven.named_on(TOPIC, 5) == {}


def test_take__own_ids_may_be_lost_with_a_database__accuses_nobody(receiver: Receiver) -> None:
    receiver.knows_own = False

    receiver.intake.take([NODE.signed(1, 1.0, seen={OWN_ID: 5})], DIRECT)

    assert receiver.reports == []
    assert receiver.ungiven.named_on(TOPIC, 4) == {NODE.node_id: 1}


def test_run__after_a_restart__what_was_stored_before_is_named_by_no_payload() -> None:
    after = UngivenIds(lambda: OWN_ID, lambda: True)
    stored = [NODE.received(NODE.signed(2, 2.0, seen={OWN_ID: 5}))]
    with pytest.raises(NotReady, match="the last envelopes of other nodes"):
        after.check()

    asyncio.run(after.run(lambda: stored))

    after.check()
    assert after.named_on(TOPIC, 4) == {NODE.node_id: 2}


def test_take__more_topics_than_are_told_apart__no_payload_names_what_came_then(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_node.replicating.own_ids.MOST_TOPICS", 1)
    other = publishes.paid(publishes.group_message(identifier=b"h" * 16, seen={OWN_ID: 9}), 200)

    receiver.intake.take([NODE.signed(1, 1.0, seen={OWN_ID: 9})], DIRECT)
    receiver.intake.take([NODE.signed(2, 2.0, other)], DIRECT)

    assert receiver.ungiven.named_on(TOPIC, 4) == {NODE.node_id: 1}
    assert receiver.ungiven.named_on(TopicKind.WELCOME.topic(bytes(32)), 4) == {NODE.node_id: 2}
