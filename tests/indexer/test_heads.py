from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.sync.server import ServerConnection, serve

from chainkit.chain.heads import HeadWatcher, SubscriptionState
from localnet.anvil import Anvil

LONG = 60.0
HEADS = [bytes([number]) * 32 for number in range(9)]


def never() -> bool:
    return False


def wait_until(reached: Callable[[], bool], what: Any = "") -> None:
    deadline = time.monotonic() + LONG
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def anvil() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


@pytest.fixture
def brief_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainkit.chain.heads.FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr("chainkit.chain.heads.LONGEST_PAUSE_SECONDS", 0.1)


def subscribed(watcher: HeadWatcher, reconnects: int = 0) -> Callable[[], bool]:
    def reached() -> bool:
        now = watcher.statistics()
        return now.state is SubscriptionState.SUBSCRIBED and now.reconnects >= reconnects

    return reached


@contextlib.contextmanager
def server(answer: Callable[[ServerConnection], None], port: int = 0) -> Iterator[str]:
    """A WebSocket server whose connections are answered by a function; yields its URL."""
    with serve(answer, "127.0.0.1", port) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{running.socket.getsockname()[1]}/v2/hush-path?key=hush-query"
        running.shutdown()
    thread.join()


def accept(connection: ServerConnection) -> None:
    request = json.loads(connection.recv())
    connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": "0x1"}))


def say_nothing(connection: ServerConnection) -> None:
    accept(connection)
    for _ in connection:
        pass


def notification() -> str:
    return json.dumps({"method": "eth_subscription", "params": {"result": {"number": "0x1"}}})


# ------------------------------------------------------------------ a real node


def test_wait__block_mined__wakes_once_for_each(anvil: Anvil) -> None:
    with HeadWatcher(anvil.url.replace("http", "ws"), poll_seconds=LONG) as watcher:
        wait_until(subscribed(watcher))
        for number in range(1, 4):
            anvil.request("evm_mine")

            assert watcher.wait(never) is True
            assert watcher.wait(never, seconds=0) is False
            assert watcher.statistics().notifications == number


def test_wait__block_mined_before__does_not_wait(anvil: Anvil) -> None:
    with HeadWatcher(anvil.url.replace("http", "ws"), poll_seconds=LONG) as watcher:
        wait_until(subscribed(watcher))
        anvil.request("evm_mine")
        wait_until(lambda: watcher.statistics().notifications == 1)

        assert watcher.wait(never) is True


def test_wait__no_block__ends_after_the_poll(anvil: Anvil) -> None:
    with HeadWatcher(anvil.url.replace("http", "ws"), poll_seconds=0.05) as watcher:
        wait_until(subscribed(watcher))

        assert watcher.wait(never) is False


# ------------------------------------------------------------------ bad servers


def test_follow__subscription_that_says_nothing__is_given_up_once_the_head_moved(
    brief_pauses: None,
) -> None:
    with (
        server(say_nothing) as url,
        HeadWatcher(url, poll_seconds=LONG, watchdog_seconds=0.2) as watcher,
    ):
        wait_until(subscribed(watcher))
        watcher.saw_head(HEADS[0])
        time.sleep(0.5)
        patient = watcher.statistics()
        watcher.saw_head(HEADS[1])
        wait_until(lambda: watcher.statistics().mute == 1)
        wait_until(subscribed(watcher, 1))

        assert (patient.mute, patient.reconnects) == (0, 0)
        statistics = watcher.statistics()
        assert (statistics.mute, statistics.reconnects) == (1, 1)
        assert statistics.last_error == "a subscription that says nothing"


def test_follow__server_that_goes_and_comes_back__subscribes_again(brief_pauses: None) -> None:
    is_gone = threading.Event()

    def notify_once(connection: ServerConnection) -> None:
        accept(connection)
        connection.send(notification())
        is_gone.wait()

    with contextlib.ExitStack() as stack:
        with server(notify_once) as url:
            watcher = stack.enter_context(HeadWatcher(url, poll_seconds=LONG))
            assert watcher.wait(never) is True
            is_gone.set()
        wait_until(lambda: watcher.statistics().last_error == "ConnectionRefusedError")
        is_gone.clear()
        with server(notify_once, port=urlsplit(url).port or 0):
            assert watcher.wait(never) is True
            is_gone.set()


def test_follow__server_that_hangs_up_after_each_notification__subscribes_each_time(
    brief_pauses: None,
) -> None:
    def answer(connection: ServerConnection) -> None:
        accept(connection)
        connection.send(notification())

    with server(answer) as url, HeadWatcher(url, poll_seconds=LONG) as watcher:
        for _ in range(3):
            assert watcher.wait(never) is True

        assert watcher.statistics().notifications >= 3


@pytest.mark.parametrize(
    "reply",
    [
        '{"id": 1, "error": {"code": -32601, "message": "hush-path has no notifications"}}',
        '{"id": 1, "result": null}',
        "[]",
        "no JSON",
        b"\xff\xfe",
        '{"id": 1, "result": "0x1"}' + " " * 2**21,
    ],
    ids=["refused", "null", "list", "no JSON", "bytes", "gigantic"],
)
def test_follow__server_that_gives_no_subscription__is_tried_again_and_polling_goes_on(
    reply: str | bytes, brief_pauses: None
) -> None:
    def answer(connection: ServerConnection) -> None:
        connection.recv()
        connection.send(reply)
        for _ in connection:
            pass

    with server(answer) as url, HeadWatcher(url, poll_seconds=0.01) as watcher:
        wait_until(lambda: watcher.statistics().reconnects > 1)

        assert watcher.wait(never) is False
        statistics = watcher.statistics()
        assert statistics.notifications == 0
        assert "hush" not in f"{watcher!r} {statistics!r}"


def test_follow__malformed_notifications__subscribes_again(brief_pauses: None) -> None:
    def answer(connection: ServerConnection) -> None:
        accept(connection)
        connection.send('{"method": "something else"}')
        connection.send("no JSON")
        for _ in connection:
            pass

    with server(answer) as url, HeadWatcher(url, poll_seconds=LONG) as watcher:
        wait_until(lambda: watcher.statistics().reconnects > 1)

        assert watcher.statistics().notifications == 0


def test_wait__flood_of_notifications__is_no_flood_of_polls() -> None:
    def answer(connection: ServerConnection) -> None:
        accept(connection)
        for _ in range(2000):
            connection.send(notification())
        for _ in connection:
            pass

    with server(answer) as url, HeadWatcher(url, poll_seconds=0.5) as watcher:
        polls = 0
        while watcher.wait(never):
            polls += 1

        assert watcher.statistics().notifications == 2000
        assert 1 <= polls < 1000
        assert watcher.statistics().wake_ups == polls


def test_follow__nobody_listens__polls(brief_pauses: None) -> None:
    with server(say_nothing) as url:
        pass

    with HeadWatcher(url, poll_seconds=0.01) as watcher:
        wait_until(lambda: watcher.statistics().reconnects > 1)

        assert watcher.wait(never) is False
        assert watcher.statistics().last_error == "ConnectionRefusedError"


def test_close__at_any_time__leaves_no_thread(brief_pauses: None) -> None:
    with server(say_nothing) as url:
        for seconds in (0, 0.01, 0.1):
            with HeadWatcher(url, poll_seconds=LONG):
                time.sleep(seconds)

            assert [each.name for each in threading.enumerate() if each.name == "newHeads"] == []


def test_log__any_step_at_debug_level__tells_no_secret_of_the_url(
    caplog: pytest.LogCaptureFixture, brief_pauses: None
) -> None:
    caplog.set_level(logging.DEBUG)

    def refuse(connection: ServerConnection) -> None:
        connection.recv()

    for answer in (say_nothing, refuse):
        with server(answer) as url, HeadWatcher(url, poll_seconds=0.01) as watcher:
            wait_until(
                subscribed(watcher)
                if answer is say_nothing
                else lambda watcher=watcher: watcher.statistics().reconnects > 0
            )
    client_lines = [each.getMessage() for each in caplog.records if "server" not in each.name]

    assert "hush" not in "\n".join(client_lines)
