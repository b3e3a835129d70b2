"""The watchdog's rounds on a loop in virtual time: what it asks, and what it reports."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import grpc
import pytest

from chainkit.errors import StoreError
from chainkit.misbehavior.report import LivenessRequest
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.types import BlockReference, Node, Place
from chainkit_node.peers.client import PeerRefused, PeerSilent
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.watching.comparing import Question
from chainkit_node.watching.rounds import Rounds
from chainkit_node.watching.watchdog import Watchdog, Watched
from support.network.originator import Originator
from support.network.simulation.loop import run

from .test_comparing import LOG, NODE, OWN, OWN_KEY, PEER_KEY, of_chain

PEER = Node(200, PEER_KEY.public_key, "http://peer:1", True)
LISTING = Listing(
    {
        100: Node(100, OWN_KEY.public_key, "http://own:1", True),
        200: PEER,
        300: Node(300, NODE.key.public_key, "http://other:1", False),
    },
    100,
    BlockReference(1, bytes(32)),
)
Answer = Callable[[message_api_pb2.QueryEnvelopesRequest], Sequence[bytes]]


@dataclass
class Setting:
    """A watchdog of one peer, and everything that it uses and tells."""

    answer: Answer = lambda request: ()
    seconds: float = 0.0
    error: Exception | None = None
    rows_error: Exception | None = None
    liveness: list[tuple[int, Misbehavior, LivenessRequest, int]] = field(default_factory=list)
    safety: list[tuple[int, Misbehavior, Sequence[bytes]]] = field(default_factory=list)
    taken: list[tuple[Sequence[bytes], Source]] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    asked: list[message_api_pb2.QueryEnvelopesRequest] = field(default_factory=list)
    patience: list[float] = field(default_factory=list)
    connections: int = 0
    open_now: int = 0
    chain_ids: frozenset[int] = frozenset({0})

    def play(self, seconds: float) -> None:
        """Watch for so long."""

        async def story() -> None:
            loop = asyncio.get_running_loop()
            chance = random.Random(5)
            watchdog = Watchdog(
                lambda: LISTING,
                self.connect,
                self,
                self,
                self,
                Rounds(chance),
                loop.time,
                self.watched.append,
                chance,
            )
            task = asyncio.ensure_future(watchdog.run())
            await asyncio.sleep(seconds)
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        run(story())
        assert self.open_now == 0

    # ---------------------------------------------------------------- the peer

    def connect(self, node: Node) -> Setting:
        assert node == PEER
        self.connections += 1
        self.open_now += 1
        return self

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        assert method.endswith("ReplicationApi/QueryEnvelopes")
        asked = message_api_pb2.QueryEnvelopesRequest.FromString(request)
        self.asked.append(asked)
        self.patience.append(seconds)
        if self.seconds > seconds:
            await asyncio.sleep(seconds)
            raise PeerSilent("node 200", "an answer", "none")
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return written_envelopes(self.answer(asked))

    def subscribe(self, *_: object) -> object:
        raise AssertionError("a watchdog opens no stream")

    async def close(self) -> None:
        self.open_now -= 1

    # ---------------------------------------------------------------- what is held

    def final_ids(self) -> Mapping[int, int]:
        if self.rows_error is not None:
            raise self.rows_error
        return {0: 5}

    def final_after(self, originator_id: int, after: int) -> Mapping[Place, bytes]:
        return {place: OWN[place] for place in OWN if place[1] > after}

    def held(self, places: Collection[Place]) -> Mapping[Place, bytes]:
        return {place: (OWN | LOG)[place] for place in places if place in OWN | LOG}

    def topic_question(self, chance: random.Random) -> Question | None:
        return Question({300: 1}, topics=frozenset({b"t"}), picked=((300, 2),))

    # ---------------------------------------------------------------- the intake and the reports

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        self.taken.append((data, source))
        return Taken(0, 0, 0, 1, 0)

    def last_id(self, originator_id: int) -> int:
        raise AssertionError("nothing is replicated here")

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        self.safety.append((node_id, misbehavior, envelopes))

    def submit_own_liveness(
        self,
        node_id: int,
        misbehavior: Misbehavior,
        request: LivenessRequest,
        response_time_ns: int,
    ) -> None:
        self.liveness.append((node_id, misbehavior, request, response_time_ns))


def honest(request: message_api_pb2.QueryEnvelopesRequest) -> list[bytes]:
    if request.query.topics:
        return [LOG[300, 2], LOG[300, 3]]
    [after] = request.query.last_seen.node_id_to_sequence_id.values()
    return [of_chain(each) for each in (1, 2, 3, 5) if each > after]


def instead(place: Place, other: bytes) -> Answer:
    """An honest answer, but for one envelope."""
    held = of_chain(place[1]) if place in OWN else LOG[place]
    return lambda request: [other if each == held else each for each in honest(request)]


def test_watch__an_honest_node__one_connection_and_two_queries_a_round_and_no_report() -> None:
    setting = Setting(honest)

    setting.play(600)

    assert 7 <= setting.connections <= 14
    assert len(setting.asked) == 2 * setting.connections == len(setting.watched)
    assert {bool(each.query.topics) for each in setting.asked} == {True, False}
    assert sum(each.findings.compared for each in setting.watched) > 20
    assert (setting.liveness, setting.safety, setting.taken) == ([], [], [])


@pytest.mark.conforms("N50")
def test_watch__a_payload_of_another_chain__is_reported_as_it_was_served() -> None:
    other = of_chain(5, time=8)
    setting = Setting(instead((0, 5), other))

    setting.play(600)

    assert setting.safety
    assert all(
        each == (200, Misbehavior.BLOCKCHAIN_INCONSISTENCY, [other]) for each in setting.safety
    )
    assert setting.liveness == []


def test_watch__a_peer_that_signs_no_payload_of_the_chain__is_told_of_once_and_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    message = OriginatorEnvelope.FromString(of_chain(2))
    message.blockchain_proof.ClearField("node_signature")
    setting = Setting(instead((0, 2), message.SerializeToString()))

    caplog.set_level(logging.INFO)
    setting.play(300)

    assert (setting.safety, setting.liveness) == ([], [])
    told = [each for each in caplog.records if "signs no payload of the chain" in each.getMessage()]
    assert len(told) == 1


def test_watch__an_envelope_that_its_originator_signed_twice__goes_to_the_intake() -> None:
    other = NODE.signed(2, 7)
    setting = Setting(instead((300, 2), other))

    setting.play(60)

    [(data, source), *_] = setting.taken
    assert data == [other]
    assert source == Source(300, NODE.key.public_key, is_direct=False)
    assert (setting.safety, setting.liveness) == ([], [])


@pytest.mark.conforms("N45")
@pytest.mark.parametrize(
    "answer",
    [
        instead((300, 2), Originator(300, PEER_KEY).signed(2, 7)),
        instead((0, 5), of_chain(5, OWN_KEY)),
        lambda request: [b"\xff"],
    ],
    ids=["a made up envelope", "another node's signature", "other bytes"],
)
def test_watch__what_nobody_vouches_for__is_a_failed_request(answer: Answer) -> None:
    setting = Setting(answer)

    setting.play(60)

    [(node_id, misbehavior, request, _), *_] = setting.liveness
    assert (node_id, misbehavior) == (200, Misbehavior.FAILED_REQUEST)
    assert request in setting.asked
    assert setting.safety == []


def test_watch__an_omission__is_counted_and_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting(lambda request: [each for each in honest(request) if each != LOG[300, 2]])
    with caplog.at_level(logging.WARNING):
        setting.play(60)

    assert {each.findings.omitted for each in setting.watched} == {(), ((300, 2),)}
    assert "not 2 of originator 300" in caplog.text
    assert (setting.safety, setting.liveness, setting.taken) == ([], [], [])


@pytest.mark.conforms("N44")
@pytest.mark.parametrize(("seconds", "is_slow"), [(0.99, False), (1.01, True), (3.5, True)])
def test_watch__answers_that_take_long__are_reported_with_their_time(
    seconds: float, is_slow: bool
) -> None:
    setting = Setting(honest, seconds)

    setting.play(60)

    expected = [
        (200, Misbehavior.SLOW_NODE, each, pytest.approx(seconds * 1e9)) for each in setting.asked
    ]
    assert setting.liveness == (expected if is_slow else [])


@pytest.mark.conforms("N43")
def test_watch__no_answer__is_reported_each_time_after_a_longer_one() -> None:
    setting = Setting(honest, 1000.0)

    setting.play(1200)

    assert setting.patience[:5] == [4.0, 8.0, 16.0, 32.0, 60.0]
    assert {each[1] for each in setting.liveness} == {Misbehavior.UNRESPONSIVE_NODE}
    times = [each[3] for each in setting.liveness]
    assert times == sorted(set(times))
    assert times[0] == pytest.approx(4e9)
    assert len(times) >= 5


def refusal(code: grpc.StatusCode) -> PeerRefused:
    error = PeerRefused("node 200", "envelopes", code.name)
    error.code = code
    return error


@pytest.mark.conforms("N45")
@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_watch__error_codes__are_reported_but_for_those_of_limits(code: grpc.StatusCode) -> None:
    setting = Setting(error=refusal(code), seconds=0.25)

    setting.play(60)

    expected = [
        (200, Misbehavior.FAILED_REQUEST, each, pytest.approx(25e7)) for each in setting.asked
    ]
    is_limit = code.name in ("RESOURCE_EXHAUSTED", "UNAUTHENTICATED")
    assert setting.asked
    assert setting.liveness == ([] if is_limit else expected)


@pytest.mark.parametrize("error", [StoreError("database", "an answer", "none"), KeyError("bug")])
def test_watch__a_fault_of_its_own__is_told_once_and_reported_to_nobody(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    setting = Setting(honest, rows_error=error)

    with caplog.at_level(logging.WARNING):
        setting.play(600)

    assert setting.connections > 5
    assert setting.liveness == []
    assert caplog.text.count("node 200 could not be watched as clients see it: ") == 1
