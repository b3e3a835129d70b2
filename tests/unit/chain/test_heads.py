import os
import threading

import pytest

from chainkit.chain.heads import HeadWatcher, SubscriptionState, WakeUp, Watchdog
from chainkit.errors import ConfigurationError

URL = "wss://alice:hush-password@rpc.example:8443/v2/hush-path?token=hush-query"
HEADS = [bytes([number]) * 32 for number in range(9)]


def never() -> bool:
    return False


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def watchdog(clock: Clock) -> Watchdog:
    watched = Watchdog(30, clock)
    watched.subscribed()
    watched.saw_head(HEADS[0])
    return watched


# ------------------------------------------------------------------ waiting


def test_wait__without_a_subscription__ends_after_the_poll() -> None:
    with HeadWatcher(None, poll_seconds=0.01) as watcher:
        assert watcher.wait(never) is False
        assert watcher.wait(never, seconds=0) is False
        assert watcher.statistics().state is SubscriptionState.OFF


def test_wait__stop_requested__ends_without_waiting() -> None:
    with HeadWatcher(None, poll_seconds=10**6) as watcher:
        assert watcher.wait(lambda: True) is False


def test_wait__stop_requested_meanwhile__ends() -> None:
    asked = []

    def is_stopped() -> bool:
        asked.append(True)
        return len(asked) > 2

    with HeadWatcher(None, poll_seconds=10**6) as watcher:
        assert watcher.wait(is_stopped) is False


def test_wake_up__set_before__is_seen_once() -> None:
    wake_up = WakeUp()
    wake_up.set()
    wake_up.set()

    assert [wake_up.wait(0), wake_up.wait(0)] == [True, False]
    wake_up.close()


def test_wake_up__set_by_another_thread_meanwhile__wakes() -> None:
    wake_up = WakeUp()
    thread = threading.Timer(0.01, wake_up.set)
    thread.start()

    assert wake_up.wait(60) is True
    thread.join()
    wake_up.close()


def test_wake_up__more_often_than_a_pipe_holds__blocks_nobody() -> None:
    wake_up = WakeUp()
    for _ in range(2**17):
        wake_up.set()

    assert wake_up.wait(0) is True
    wake_up.close()


def test_wake_up__again_and_again__wakes_at_once_and_then_at_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    clock = Clock()

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        clock.now += seconds

    monkeypatch.setattr("chainkit.chain.heads.time.monotonic", clock)
    monkeypatch.setattr("chainkit.chain.heads.time.sleep", sleep)
    wake_up = WakeUp()
    for passed in (0, 0.015, 0, 1):
        clock.now += passed
        wake_up.set()
        wake_up.wait(0)
    wake_up.wait(0)
    wake_up.close()

    assert slept == [0, 0.005, 0.02, 0]
    assert wake_up.count == 4


def test_close_watcher__that_only_polled__gives_its_files_back() -> None:
    before = len(os.listdir("/dev/fd"))

    for _ in range(5):
        with HeadWatcher(None, poll_seconds=1):
            pass

    assert len(os.listdir("/dev/fd")) == before


# ------------------------------------------------------------------ the watchdog


def test_watch__no_block_for_a_day__is_no_silence() -> None:
    clock = Clock()
    watched = watchdog(clock)
    for _ in range(9):
        clock.now += 86_400
        watched.saw_head(HEADS[0])

        assert not watched.is_mute()


def test_watch__head_moves_and_nothing_says_so__is_mute_after_some_seconds() -> None:
    clock = Clock()
    watched = watchdog(clock)

    watched.saw_head(HEADS[1])
    clock.now += 29
    early = watched.is_mute()
    watched.saw_head(HEADS[2])
    clock.now += 1

    assert (early, watched.is_mute()) == (False, True)


@pytest.mark.parametrize("order", ["notified first", "polled first"])
def test_watch__one_notification_for_each_block__is_well(order: str) -> None:
    clock = Clock()
    watched = watchdog(clock)
    for head in HEADS[1:]:
        steps = [watched.notified, lambda head=head: watched.saw_head(head)]
        for step in steps if order == "notified first" else steps[::-1]:
            step()
            clock.now += 1
        clock.now += 86_400

        assert not watched.is_mute()


def test_watch__falls_silent_after_a_while__is_mute() -> None:
    clock = Clock()
    watched = watchdog(clock)
    for head in HEADS[1:5]:
        watched.notified()
        watched.saw_head(head)

    watched.saw_head(HEADS[5])
    clock.now += 30

    assert watched.is_mute()


def test_watch__notifications_without_end_before_it_fell_silent__cover_one_move_only() -> None:
    clock = Clock()
    watched = watchdog(clock)
    for _ in range(100):
        watched.notified()

    watched.saw_head(HEADS[1])
    clock.now += 30
    covered = watched.is_mute()
    watched.saw_head(HEADS[2])
    clock.now += 30

    assert (covered, watched.is_mute()) == (False, True)


def test_watch__subscribed_again__starts_anew() -> None:
    clock = Clock()
    watched = watchdog(clock)
    watched.saw_head(HEADS[1])
    clock.now += 30

    watched.subscribed()

    assert not watched.is_mute()


def test_watch__first_head_of_all__is_no_move() -> None:
    clock = Clock()
    watched = Watchdog(30, clock)
    watched.subscribed()
    watched.saw_head(HEADS[0])
    clock.now += 31

    assert not watched.is_mute()


# ------------------------------------------------------------------ the URL


def test_print__watcher_with_a_key_in_its_url__shows_the_host_only() -> None:
    watcher = HeadWatcher(URL, poll_seconds=1)

    assert repr(watcher) == "HeadWatcher(wss://rpc.example:8443)"
    assert "hush" not in f"{watcher} {watcher.statistics()!r}"


@pytest.mark.parametrize(
    "url", ["http://hush", "hush", "ws://", URL.replace("8443", "hush"), URL.replace("wss", "wsss")]
)
def test_create_watcher__no_websocket_url__is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^WebSocket: expected a ws:// or") as caught:
        HeadWatcher(url, poll_seconds=1)

    assert "hush" not in str(caught.value)
