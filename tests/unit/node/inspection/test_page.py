"""The answers of the page: one look a second, and a reason where there is none."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import StoreUnavailable
from chainkit.service.monitor_server import Answer
from chainkit_node.inspection import page as page_module
from chainkit_node.inspection.json_form import parse_status
from chainkit_node.inspection.live import LiveParts, LoopSilent
from chainkit_node.inspection.page import CACHE_SECONDS, StatusPage, page_answer
from support.node_status import healthy
from support.reporting import Host, register

NOW = 1_700_000_000.0


class Node:
    """A page on a real database, with a clock and a loop of the test's."""

    def __init__(self, path: Path) -> None:
        self.host = Host(path)
        register(self.host)
        self.seconds = 0.0
        self.looks = 0
        self.fault: Exception | None = None
        self.page = StatusPage(self.host.store, self, lambda: NOW, lambda: self.seconds)

    def look(self) -> LiveParts:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        live = healthy().live
        assert live is not None
        return LiveParts(live, {}, {})

    def asked(self) -> tuple[int, Any]:
        answer = self.page.status()
        return answer.status, json.loads(answer.body)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "node.db")
    with closing(node.host):
        yield node


def test_status__asked_often__looks_once_a_second(node: Node) -> None:
    first, again = node.asked(), node.asked()
    node.seconds = CACHE_SECONDS
    node.asked()

    assert first == again
    assert node.looks == 2
    assert parse_status(first[1]).live is not None


def test_status__loop_that_hangs__says_so_beside_what_is_stored(node: Node) -> None:
    node.fault = LoopSilent("event loop", "a turn within 1 s", "none")

    status, content = node.asked()

    assert status == 200
    assert content["live"] is None
    assert content["no_live"] == "event loop: expected a turn within 1 s, got none"
    assert content["node_id"] == 100


def test_status__database_that_is_away__is_503_with_the_reason(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable("database node.db", "an answer", "no \x1b[2J")

    monkeypatch.setattr(page_module, "build_status", away)

    assert node.asked() == (503, {"error": "database node.db: expected an answer, got no \\x1b[2J"})


def test_status__look_that_takes_long__does_not_take_all_threads(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "WAIT_SECONDS", 0.01)
    begun, release = threading.Event(), threading.Event()

    def slow() -> LiveParts:
        begun.set()
        release.wait()
        raise LoopSilent("event loop", "a turn", "none")

    monkeypatch.setattr(node, "look", slow)
    answers: list[Answer] = []
    first = threading.Thread(target=lambda: answers.append(node.page.status()))
    first.start()
    begun.wait()

    status, content = node.asked()
    release.set()
    first.join()

    assert (status, content["error"]) == (503, "another look at the database has not ended yet")
    assert [each.status for each in answers] == [200]


def test_status__closed__looks_no_more(node: Node) -> None:
    node.asked()
    node.page.close()

    assert node.asked() == (503, {"error": "the node is ending"})
    assert node.looks == 1


def test_paths__page_and_status__are_there(node: Node) -> None:
    paths = node.page.paths()

    assert set(paths) == {"/", "/status", "/status.json"}
    assert paths["/"]().body == paths["/status"]().body == page_answer().body


def test_page__its_own_text__loads_nothing_from_elsewhere_and_writes_no_markup() -> None:
    page = page_answer().body.decode()

    assert re.findall(r"https?://", page) == []
    assert [each for each in ("innerHTML", "outerHTML", "insertAdjacentHTML") if each in page] == []
    assert re.findall(r"<[^>]*\s(?:style|on\w+)=", page) == []
    assert len(page) < 40_000
