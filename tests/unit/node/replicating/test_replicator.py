"""Failures of liveness that the replicator reports: silence, late answers, errors (§3.2.7)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import grpc
import pytest

from chainkit.errors import InvalidSignature
from chainkit.misbehavior.report import LivenessRequest
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import BlockReference, Node
from chainkit_node.peers.client import Peer, PeerRefused, PeerSilent, subscription
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating import replicator
from chainkit_node.replicating.delivery import Delivery
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.plan import SubscriptionPlan
from chainkit_node.replicating.replicator import Replicator
from support.network.originator import Originator
from support.network.simulation.loop import run

KEY = b"\4" * 65
LISTING = Listing(
    {each: Node(each, KEY, f"http://{each}:1", True) for each in (100, 200)},
    100,
    BlockReference(1, bytes(32)),
)


@dataclass
class Setting:
    """A replicator of one peer, what that does with a stream, and what is told of it."""

    seconds: float = 0.0
    """Until the first frame, or until ``error``."""
    error: Exception | None = None
    later: tuple[float, Exception] | None = None
    """From when on it is another error, and which."""
    refused_batch: Exception | None = None
    reports: list[tuple[int, Misbehavior, LivenessRequest, int]] = field(default_factory=list)
    patience: list[float] = field(default_factory=list)
    compared: set[int] = field(default_factory=set)
    """Nodes that are to be compared with soon."""
    deliveries: list[Delivery] = field(default_factory=list)
    """The stream's work before it was open, while a frame was stored, and then."""

    def play(self, seconds: float) -> None:
        """Replicate for so long."""

        async def story() -> None:
            chance = random.Random(1)
            loop = asyncio.get_running_loop()
            tested = Replicator(
                self.listing,
                self.connect,
                self,
                self,
                SubscriptionPlan(chance),
                loop.time,
                lambda *_: None,
                self.compared.add,
                chance.random,
            )
            self.replicator = tested
            self.deliveries.append(tested.delivery(200))
            task = asyncio.ensure_future(tested.run())
            await asyncio.sleep(seconds)
            self.deliveries.append(tested.delivery(200))
            self.streams = list(tested.streams().values())
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        run(story())

    def listing(self) -> Listing:
        return LISTING

    def connect(self, node: Node) -> Peer:
        return self

    async def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        assert (originator_id, after_id) == (200, 7)
        self.patience.append(header_seconds)
        if self.seconds > header_seconds:
            await asyncio.sleep(header_seconds)
            raise PeerSilent("node 200", "an answer", "none")
        await asyncio.sleep(self.seconds)
        if self.later and asyncio.get_running_loop().time() >= self.later[0]:
            raise self.later[1]
        if self.error is not None:
            raise self.error
        yield []
        while True:
            await asyncio.sleep(15)
            yield [b"batch"]

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        raise AssertionError("a replicator opens streams alone")

    async def close(self) -> None:
        """There is nothing to close."""

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        if self.refused_batch is not None:
            raise self.refused_batch
        self.deliveries.append(self.replicator.delivery(source.originator_id))
        return Taken(len(data), 0, 0, 0, 0)

    def last_id(self, originator_id: int) -> int:
        return 7

    def submit_own_liveness(
        self,
        node_id: int,
        misbehavior: Misbehavior,
        request: LivenessRequest,
        response_time_ns: int,
    ) -> None:
        self.reports.append((node_id, misbehavior, request, response_time_ns))


REQUEST = subscription(200, 7)


def refusal(code: grpc.StatusCode | None, cursor: dict[int, int] | None = None) -> PeerRefused:
    error = PeerRefused("node 200", "envelopes", code)
    error.code, error.cursor = code, cursor
    return error


def test_answers__in_time__nothing_is_reported() -> None:
    setting = Setting(seconds=0.99)

    setting.play(100)

    assert setting.reports == []


def test_delivery__before_while_and_after_a_frame_is_stored__is_told() -> None:
    setting = Setting()

    setting.play(20)

    assert setting.deliveries == [Delivery.NONE, Delivery.TAKES, Delivery.WAITS]


@pytest.mark.conforms("N43")
def test_no_answer__each_try_waits_longer__each_is_reported_with_a_longer_time() -> None:
    setting = Setting(seconds=1000.0)

    setting.play(400)

    assert setting.patience[:5] == [4.0, 8.0, 16.0, 32.0, 60.0]
    assert len(setting.reports) >= 5
    assert {each[:2] for each in setting.reports} == {(200, Misbehavior.UNRESPONSIVE_NODE)}
    assert all(each[2] == REQUEST for each in setting.reports)
    times = [each[3] for each in setting.reports]
    assert times == sorted(set(times))
    assert times[0] == pytest.approx(4e9)


@pytest.mark.conforms("N43")
def test_no_connection__refused_at_once__is_reported_once_nothing_came_for_so_long() -> None:
    setting = Setting(error=PeerSilent("node 200", "an answer", "connection refused"))

    setting.play(120)

    assert len(setting.patience) > len(setting.reports) > 3
    assert all(each[3] >= 4e9 for each in setting.reports)
    assert {each[1] for each in setting.reports} == {Misbehavior.UNRESPONSIVE_NODE}


@pytest.mark.conforms("N44")
@pytest.mark.parametrize("seconds", [1.01, 3.9])
def test_late_answer__is_reported_with_its_time(seconds: float) -> None:
    setting = Setting(seconds=seconds)

    setting.play(100)

    expected = (200, Misbehavior.SLOW_NODE, REQUEST, pytest.approx(seconds * 1e9))
    assert setting.reports == [expected]


@pytest.mark.conforms("N45")
@pytest.mark.parametrize("code", [None, *grpc.StatusCode])
def test_error_code__every_instance_is_reported_but_for_a_token_that_nobody_knows(
    code: grpc.StatusCode | None,
) -> None:
    setting = Setting(seconds=0.25, error=refusal(code))

    setting.play(60)

    tries = len(setting.patience)
    expected = [(200, Misbehavior.FAILED_REQUEST, REQUEST, pytest.approx(25e7))] * tries
    assert tries > 2
    assert setting.reports == ([] if code is grpc.StatusCode.UNAUTHENTICATED else expected)
    assert set(setting.patience) == {4.0}


def test_errors__after_a_silence__are_counted_from_the_first_one_on() -> None:
    setting = Setting(error=PeerSilent("node 200", "an answer", "none"))
    setting.later = 60.0, refusal(grpc.StatusCode.INTERNAL)

    setting.play(100)

    [state] = setting.streams
    assert state.failing_since == pytest.approx(75.0, abs=16)
    assert state.changed_at < 1.0


def test_error_code__with_a_cursor_to_go_on_from__is_compared_with_and_no_failure() -> None:
    setting = Setting(error=refusal(grpc.StatusCode.ABORTED, {200: 5}))

    setting.play(60)

    assert setting.reports == []
    assert setting.compared == {200}


@pytest.mark.conforms("N45")
def test_envelopes__that_their_originator_did_not_sign__are_a_failed_request() -> None:
    setting = Setting(refused_batch=InvalidSignature("envelope", "node 200's", "another's"))

    setting.play(40)

    assert setting.reports
    assert {each[:2] for each in setting.reports} == {(200, Misbehavior.FAILED_REQUEST)}


MOST_REPEATED = 20


@dataclass
class Repeating(Setting):
    """A peer whose envelopes are held already: a comparison, or another stream, was faster."""

    frames: Sequence[Sequence[bytes]] = ()
    taken: int = 0

    async def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        yield []
        for each in self.frames:
            yield each
        await asyncio.sleep(3600)

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        self.taken += len(data)
        return Taken(0, 0, len(data), 0, 0)


def frames_of(ids: Sequence[int]) -> list[list[bytes]]:
    """Frames of three envelopes each."""
    node = Originator(200)
    envelopes = {each: node.signed(each) for each in set(ids)}
    return [[envelopes[each] for each in ids[n : n + 3]] for n in range(0, len(ids), 3)]


@pytest.mark.conforms("N45")
def test_stream__its_envelopes_came_from_elsewhere_meanwhile__is_no_failed_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replicator, "MOST_REPEATED", MOST_REPEATED)
    setting = Repeating(frames=frames_of(range(8, 8 + 3 * MOST_REPEATED)))

    setting.play(40)

    assert setting.taken == 3 * MOST_REPEATED
    assert setting.reports == []


@pytest.mark.conforms("N45")
@pytest.mark.parametrize(
    "ids",
    [[8] * 3 * MOST_REPEATED, [1, 2, 3, 4, 5, 6] * MOST_REPEATED],
    ids=["sent already", "below the cursor"],
)
def test_stream__sends_the_same_again_and_again__is_a_failed_request(
    ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicator, "MOST_REPEATED", MOST_REPEATED)
    setting = Repeating(frames=frames_of(ids))

    setting.play(40)

    assert setting.taken < len(ids) * len(setting.reports)
    assert {each[:2] for each in setting.reports} == {(200, Misbehavior.FAILED_REQUEST)}


ENTRIES = (Node(200, KEY, "http://200:1", True), Node(300, KEY, "http://300:1", False))
OTHER_KEY = b"\5" * 65
CHANGED_AT = 20.0


@dataclass
class Link(Setting):
    """A connection to a node at an URL, which brings that URL as the envelope of each frame."""

    url: str = ""

    async def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        while True:
            yield [self.url.encode()]
            await asyncio.sleep(5)


@dataclass
class ChangingRegistry(Setting):
    """Asks node 200 for its own envelopes, and for those of 300; one entry changes meanwhile."""

    changed: Node = ENTRIES[0]
    brought: list[tuple[int, str, bytes]] = field(default_factory=list)
    """Originator, URL of the node that was asked, and the key by which it is verified; in order."""

    def listing(self) -> Listing:
        nodes = {each.node_id: each for each in (LISTING.nodes[100], *ENTRIES)}
        if asyncio.get_running_loop().time() >= CHANGED_AT:
            nodes[self.changed.node_id] = self.changed
        return Listing(nodes, 100, BlockReference(1, bytes(32)))

    def connect(self, node: Node) -> Peer:
        return Link(url=node.http_address)

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        [url] = data
        found = (source.originator_id, url.decode(), source.signing_key)
        if found not in self.brought:
            self.brought.append(found)
        return Taken(len(data), 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            Node(200, KEY, "http://200:2", True),
            [(200, "http://200:2", KEY), (300, "http://200:2", KEY)],
        ),
        (
            Node(200, OTHER_KEY, "http://200:1", True),
            [(200, "http://200:1", OTHER_KEY)],
        ),
        (
            Node(300, OTHER_KEY, "http://300:1", False),
            [(300, "http://200:1", OTHER_KEY)],
        ),
    ],
    ids=[
        "URL of the node",
        "key of the node",
        "key of an originator that another node is asked for",
    ],
)
def test_open_stream__its_entry_in_the_registry_changes__is_opened_again_by_the_new_one(
    changed: Node, expected: list[tuple[int, str, bytes]]
) -> None:
    setting = ChangingRegistry(changed=changed)

    setting.play(CHANGED_AT + 10)

    before = [(200, "http://200:1", KEY), (300, "http://200:1", KEY)]
    assert setting.brought[:2] == before
    assert setting.brought[2:] == expected
    assert setting.reports == []
