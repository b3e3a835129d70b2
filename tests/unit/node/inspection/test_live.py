"""Looks at a running node from another thread: its streams, comparisons, repairs, and silence."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainkit.chain import Endpoint, EndpointPool
from chainkit.service.refusals import NotReady
from chainkit_indexer.follow.loop import StopRequest
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_node.inspection import live as live_module
from chainkit_node.inspection.chain_view import ChainView
from chainkit_node.inspection.live import Checks, LiveParts, LiveView, LoopSilent, RecentRepairs
from chainkit_node.inspection.snapshot import (
    MOST_REPAIRS,
    ComparisonStatus,
    HostStatus,
    StreamStatus,
)
from chainkit_node.originating.last_refusal import LastRefusal
from chainkit_node.replicating.intake import Taken
from chainkit_node.replicating.plan import Subscription
from chainkit_node.replicating.repairer import LastComparison, Repair
from chainkit_node.replicating.replicator import StreamState
from chainkit_node.watching.about_self import Hosted

NOW = 1_000.0
STREAMS = {
    Subscription(200, 200): StreamState(True, None, 7, NOW - 60.0),
    Subscription(300, 300): StreamState(False, "node 300: no \x1b answer", 0, NOW - 9.0),
    Subscription(200, 300): StreamState(True, None, 3, NOW - 4.0),
}


def waits() -> None:
    raise NotReady("own log", "an answer", "none yet")


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def view(
    loop: asyncio.AbstractEventLoop, check: Callable[[], None] = waits
) -> tuple[LiveView, list[int]]:
    """A view of a node, and on which threads the node was asked."""
    threads: list[int] = []

    def streams() -> Any:
        threads.append(threading.get_ident())
        return STREAMS

    replicator = SimpleNamespace(
        streams=streams,
        silent_seconds=lambda: {200: 0.0, 300: 9.0},
        unreachable=lambda: frozenset({300}),
        open_streams=lambda: 2,
    )
    repairer = SimpleNamespace(
        comparisons=lambda: {200: LastComparison(NOW - 30.0, 3, None)}, highest=lambda: {200: 9}
    )
    repairs = RecentRepairs(lambda: NOW)
    repairs.repaired(Repair(200, 300, Taken(4, 1, 0, 2, 0)))
    made = LiveView(
        loop,
        cast(Any, replicator),
        cast(Any, repairer),
        cast(Any, SimpleNamespace(check=check)),
        cast(Any, SimpleNamespace(hosted=lambda: {300: Hosted({b"one", b"two"}, 4)})),
        Checks(
            wrong("clock: wrong"),
            wrong("a twin\x1b"),
            wrong(None),
            cast(Any, SimpleNamespace(short=lambda: "publish: no space")),
            LastRefusal(),
        ),
        cast(Any, SimpleNamespace(seconds=lambda: 0.5)),
        cast(Any, range(5)),
        lambda: 2,
        repairs,
        ChainView(EndpointPool([Endpoint.connect("http://one")]), Monitor(StopRequest()), int),
        lambda: NOW,
        NOW - 300.0,
    )
    return made, threads


def wrong(words: str | None) -> Any:
    return SimpleNamespace(wrong=lambda: words, seconds_left=lambda: 0.0)


def test_look__at_the_nodes_doubts_about_itself__shows_the_words_of_each() -> None:
    status = looked().status

    assert (status.clock_wrong, status.twin) == ("clock: wrong", "a twin\\x1b")
    assert status.certificate_wrong is None


def looked(check: Callable[[], None] = waits) -> LiveParts:
    with running_loop() as loop:
        return view(loop, check)[0].look()


def test_look__from_another_thread__asks_on_the_loops_own() -> None:
    with running_loop() as loop:
        made, threads = view(loop)
        made.look()

    assert threads != [threading.get_ident()]
    assert len(threads) == 1


def test_look__at_streams__tells_how_each_peer_is_doing() -> None:
    peers = looked().peers

    assert peers[200].stream == StreamStatus(True, 60.0, 7, None)
    assert peers[200].comparison == ComparisonStatus(30.0, 3, None)
    assert (peers[200].substitutes, peers[200].is_unreachable) == ((), False)
    assert peers[300].stream == StreamStatus(False, 9.0, 0, "node 300: no \\x1b answer")
    assert (peers[300].silent_seconds, peers[300].substitutes) == (9.0, (200,))
    assert (peers[300].is_unreachable, peers[300].comparison) == (True, None)


def test_look__at_the_node__has_its_checks_its_log_and_its_repairs() -> None:
    parts = looked()
    status = parts.status

    assert (status.uptime_seconds, status.peer_streams) == (300.0, 2)
    # The others' streams are no readers'.
    assert (status.reader_streams, status.node_streams) == (3, 2)
    names = [each.name for each in status.failing_checks]
    assert (status.is_ready, "step" in names) == (False, True)
    assert status.own_log_waits == "own log: expected an answer, got none yet"
    assert status.storage_short == "publish: no space"
    [repair] = status.repairs
    assert (repair.peer_id, repair.originator_id) == (200, 300)
    assert (repair.missing, repair.differing) == (5, 2)
    assert status.hosts == (HostStatus(300, 2, 4),)
    assert parts.highest == {200: 9}
    assert looked(lambda: None).status.own_log_waits is None


def test_look__fault_on_the_loop__comes_back() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        looked(fail)


def test_look__loop_that_has_ended__is_silent() -> None:
    with running_loop() as loop:
        made, _ = view(loop)

    with pytest.raises(LoopSilent, match="one that has ended"):
        made.look()


def test_look__loop_that_hangs__is_silent_and_asks_nothing_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "WAIT_SECONDS", 0.01)
    release = threading.Event()
    with running_loop() as loop:
        made, threads = view(loop)
        loop.call_soon_threadsafe(release.wait)
        with pytest.raises(LoopSilent, match=r"a turn within 0\.01 s"):
            made.look()
        release.set()

    assert threads == []


def test_repairs__that_are_alike__are_one_with_their_number_and_the_newest_time() -> None:
    moments = iter(range(20))
    repairs = RecentRepairs(lambda: float(next(moments)))
    for peer_id in (200, 300, *[200] * 9):
        repairs.repaired(Repair(peer_id, 1, Taken(1, 0, 0, 0, 0)))

    newest, other = repairs.newest()

    assert (newest.peer_id, newest.times, newest.seconds_ago) == (200, 10, 1.0)
    assert (other.peer_id, other.times, other.seconds_ago) == (300, 1, 10.0)


def test_repairs__more_than_are_kept__are_the_newest() -> None:
    repairs = RecentRepairs(lambda: NOW)
    for peer_id in range(MOST_REPAIRS + 3):
        repairs.repaired(Repair(peer_id, 1, Taken(1, 0, 0, 0, 0)))

    kept = [each.peer_id for each in repairs.newest()]

    assert kept == list(range(MOST_REPAIRS + 2, 2, -1))
