"""The thread of a reading process: when it looks, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from chainkit.errors import StoreUnavailable
from chainkit_node import reader_service
from chainkit_node.reader_service import CommitFollower
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reader_health import ReaderHealth
from chainkit_node.serving.readiness import Readiness
from chainkit_node.watched_thread import WatchedThread

AWAY = StoreUnavailable("database", "an answer", "none")


class Scripted:
    """A database and a feed: each step of ``commits`` answers one wait, and the last one stops."""

    def __init__(self, *commits: bool | Exception) -> None:
        self.commits: Iterator[bool | Exception] = iter(commits)
        self.looks = 0
        self.said: list[bool] = []
        self.follower = CommitFollower(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            ReaderHealth(NodeMetrics()),
            Readiness(self.said.append),
        )

    def wait_for_commit(self, seconds: float) -> bool:
        commit = next(self.commits, None)
        if commit is None:
            self.follower.stop()
            return False
        if isinstance(commit, Exception):
            raise commit
        return commit

    def look(self) -> None:
        self.looks += 1


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_service, "_PAUSE_SECONDS", 0.0)


def test_run__commits__looks_at_each_and_not_without_one() -> None:
    scripted = Scripted(True, False, False, True, False)

    scripted.follower.run()

    assert scripted.looks == 2
    assert scripted.said == [True]


def test_run__no_notification_for_long__looks_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_service, "LOOK_SECONDS", 0.0)
    scripted = Scripted(False, False, False)

    scripted.follower.run()

    assert scripted.looks == 4


def test_run__database_is_away__is_not_ready_until_it_answers() -> None:
    scripted = Scripted(AWAY, True, AWAY, AWAY, True)

    scripted.follower.run()

    assert scripted.said == [True, False, True]
    assert scripted.looks == 2


def test_run__database_is_away_twice__each_begin_and_each_end_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripted = Scripted(AWAY, AWAY, True, True, AWAY, True)

    with caplog.at_level("INFO"):
        scripted.follower.run()

    assert [each.getMessage() for each in caplog.records] == 2 * [
        str(AWAY),
        "the database answers again",
    ]


@pytest.mark.parametrize("work", [lambda: None, Scripted(True, ValueError("broken")).follower.run])
def test_watched_thread__work_ends__tells_of_it_and_keeps_the_error(
    work: Callable[[], None],
) -> None:
    ended = Event()
    thread = WatchedThread("test", work, ended.set)

    thread.start()
    assert ended.wait(60)

    if work.__name__ == "run":
        with pytest.raises(ValueError, match="broken"):
            thread.finish()
    else:
        thread.finish()
