"""The node's page with one of every trouble, in a real browser; no node runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from chainkit.service.monitor_server import Answer, MonitorServer
from chainkit_node.inspection.json_form import as_json
from chainkit_node.inspection.page import page_answer
from support.live_page import LivePage, picture
from support.node_status import healthy, troubled

SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


class Monitor:
    """Serves the page, and whatever snapshot it is given."""

    def __init__(self) -> None:
        self.now = troubled()
        paths = {"/": page_answer, "/status.json": self.status}
        self.server = MonitorServer(("127.0.0.1", 0), paths)

    def status(self) -> Answer:
        return Answer.of_json(True, as_json(self.now))

    def close(self) -> None:
        self.server.close()


@pytest.fixture(scope="module")
def monitor() -> Iterator[Monitor]:
    with closing(Monitor()) as monitor:
        yield monitor


@pytest.fixture(scope="module")
def page(monitor: Monitor) -> Iterator[LivePage]:
    with LivePage(f"http://{monitor.server.address}/") as page:
        page.wait("#pulse-text", "live")
        yield page


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_page__of_troubles_on_any_screen__fits_it_and_can_be_read(
    page: LivePage, width: int, scheme: str
) -> None:
    seen = page.look(width, scheme, picture(f"crowded-{width}-{scheme}"))

    assert seen["overflow"] == []
    assert seen["contrasts"] == []


def test_page__strangers_texts__are_only_text(page: LivePage) -> None:
    seen = page.read()

    assert seen["markup"] == 0
    assert seen["complaints"] == []
    [hostile] = [row for row in page.rows("peers") if row[0] == "node 400"]
    assert hostile[2].startswith("<img src=//x onerror=alert(1)><b>\\x1b[2J\\u202elong long")


def test_page__troubles__are_named_before_anything_else(page: LivePage) -> None:
    text = page.read()["text"]

    assert text.index("21 things to look at") < text.index("Originators")
    for words in (
        "the registry has this node disabled",
        "1 hosted report with a proof against this node",
        "nothing is originated yet: own log: expected an answer",
        "nothing is originated: clock: expected one within 120 s of node 200",
        "its own loop is 3.2 s late: it has more to do than it can",
        "not ready: head: expected 60.0, got 75.2 seconds (docs/runbook/head-stale.md)",
        "not ready: cursor: expected 10, got 1234 blocks (docs/runbook/cursor-stale.md)",
        "node 300 does not answer: expected an answer within 4 s, got none",
        "originator 200 leaves out 1234 ids",
        "asked instead: node 100, node 500",
        "7 of originator 300 0x3a3a3a3a…; 7 of originator 300 0x4b4b4b4b…",
        "a response of 4.250 s",
        "no answer for 4.295 s or longer",
    ):
        assert words in text, words


def test_page__troubles_are_over__says_so(page: LivePage, monitor: Monitor) -> None:
    monitor.now = healthy()

    page.wait("#verdict-text", "Nothing needs attention.")

    assert page.rows("gaps") == [["No envelope is missing."]]
    assert [row[:2] for row in page.rows("peers")] == [["node 200", "open"]]
