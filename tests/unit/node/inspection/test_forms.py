"""A snapshot as JSON and back, as text, and the reasons for attention that it has."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from chainkit.errors import MalformedAnswer
from chainkit.terminal.facts import LINE_WIDTH
from chainkit_node.inspection.attention import Reason, find_attention
from chainkit_node.inspection.json_form import as_json, parse_status
from chainkit_node.inspection.network import NetworkReason
from chainkit_node.inspection.snapshot import (
    MOST_TEXT,
    HostStatus,
    NodeStatus,
    OriginatorKind,
    PeerState,
)
from chainkit_node.inspection.text_form import as_text
from chainkit_node.inspection.words import duration, shown
from support.node_status import HOSTILE, healthy, troubled
from support.project import DOCS


@pytest.mark.parametrize("status", [healthy(), troubled(), healthy(live=None, no_live="no node")])
def test_json__read_back__is_the_same_snapshot(status: NodeStatus) -> None:
    sent = json.dumps(as_json(status))

    assert parse_status(json.loads(sent)) == status


def spoiled(path: str, value: Any) -> Any:
    """A snapshot's JSON with another value at a place such as ``originators.1.held_id``."""
    content = json.loads(json.dumps(as_json(troubled())))
    *parents, last = path.split(".")
    place: Any = content
    for name in parents:
        place = place[int(name)] if isinstance(place, list) else place[name]
    place[last] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 1, "status: expected JSON of format 4, got 1"),
        ("node_id", "100", "status.node_id: expected int, got 100"),
        ("is_enabled", 1, "status.is_enabled: expected bool, got 1"),
        ("taken_at", None, "status.taken_at: expected a number, got None"),
        ("originators", {}, "status.originators: expected a list, got {}"),
        ("originators.1.kind", "x\x1b", "status.originators[1].kind: expected one of"),
        ("peers.0.live.stream", [], "status.peers[0].live.stream: expected an object"),
        ("live", {}, "status.live: expected a field uptime_seconds, got none"),
    ],
)
def test_parse_status__another_value_in_a_field__names_its_place(
    path: str, value: Any, said: str
) -> None:
    with pytest.raises(MalformedAnswer) as caught:
        parse_status(spoiled(path, value))

    assert str(caught.value).startswith(said)
    assert "\x1b" not in str(caught.value)


def test_parse_status__no_object__is_refused() -> None:
    with pytest.raises(MalformedAnswer, match="JSON of format 4, got list"):
        parse_status([])


def test_parse_status__text_that_would_rewrite_a_screen__is_made_printable() -> None:
    status = parse_status(spoiled("peers.0.url", HOSTILE))

    assert status.peers[0].url == "<img src=//x onerror=alert(1)><b>\\x1b[2J\\u202e"


def test_shown__any_text__is_printable_bounded_and_stays_as_it_is() -> None:
    text = shown("\x1b\u202e\n" + "é" * 400)

    assert text.isprintable()
    assert len(text) == MOST_TEXT
    assert shown(text) == text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((None, "?"), (-3.0, "0.0 s"), (4.24, "4.2 s"), (119.0, "119.0 s"), (120.0, "2 min")),
        *((7_200.0, "2 h"), (200_000.0, "2 d")),
    ],
)
def test_duration__of_any_length__has_one_unit(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_attention__healthy_node__is_none() -> None:
    assert find_attention(healthy()) == ()


def test_attention__every_trouble__is_named_with_the_gravest_first() -> None:
    status = troubled()
    originators = tuple(
        replace(each, disputed_ids=1) if each.kind is OriginatorKind.OWN else each
        for each in status.originators
    )
    found = find_attention(replace(status, originators=originators))

    # Two checks of /readyz fail.
    assert list(dict.fromkeys(each.reason for each in found)) == [
        each for each in Reason if each is not Reason.NOT_REGISTERED
    ]
    unknown = find_attention(healthy(node_id=None, is_enabled=False))
    assert [each.reason for each in unknown] == [Reason.NOT_REGISTERED]


def test_attention__other_nodes_host_proofs__names_them_and_claims_are_no_reason() -> None:
    live = healthy().live
    assert live is not None
    hosts = (HostStatus(200, 2, 1), HostStatus(300, 0, 9), HostStatus(400, 1, 0))

    found = find_attention(healthy(live=replace(live, hosts=hosts)))

    assert [each.text for each in found] == ["2 proofs against this node at 200, 400"]
    assert not find_attention(healthy(live=replace(live, hosts=hosts[1:2])))
    assert "against this node at 300: 0 proved, 9 claimed" in as_text(
        healthy(live=replace(live, hosts=hosts))
    )


def test_attention__not_registered_yet__says_nothing_of_a_log_that_it_cannot_have() -> None:
    found = find_attention(replace(troubled(), node_id=None))

    reasons = {each.reason for each in found}
    assert Reason.NOT_REGISTERED in reasons and Reason.OWN_LOG_WAITS not in reasons


def test_text__healthy_node__says_so_in_few_lines() -> None:
    lines = as_text(healthy()).splitlines()

    assert lines[0] == "node         100, enabled, key 0x04ababababab…, chainkit 0.1.0"
    assert "attention    none" in lines
    assert (
        "chain        block 12 0x2f2f2f2f… of chain 31337, final up to 10, 0 blocks to go" in lines
    )
    assert "        200  peer      9         0  12.0 s        0         0" in lines
    assert "gaps         none" in lines


def test_text__troubled_node__has_each_trouble_and_nothing_unprintable() -> None:
    text = as_text(troubled())
    whole = " ".join(text.split())

    for words in (
        "1 hosted report with a proof against this node",
        "gaps         of originator 200: 3-1236 omitted",
        "node 300: no answer for 61.0 s",
        "node 300: not compared either",
        "node 300: asked in its place: 100, 500",
        "repairs      4.0 s ago from node 200: 17 missing and 2 other envelopes of originator 300",
        "2: rewind to 21234500, 12 blocks above 21234500, 3 kept, 1 moved, 0 dropped",
        "against this node: 1 proved, 3 claimed",
        "12345 about node 300: UNRESPONSIVE_NODE claimed, from client",
        "2023-11-14T22:13:20Z node 300: DUPLICATE_SEQUENCE_ID proved; "
        "7 of originator 300 0x3a3a3a3a…, 7 of originator 300 0x4b4b4b4b…",
        "node 300: UNRESPONSIVE_NODE claimed; no answer for 4.295 s or longer",
        "left out     3 more",
    ):
        assert " ".join(words.split()) in whole, words
    assert all(line.isprintable() and len(line) <= LINE_WIDTH for line in text.splitlines())


@pytest.mark.parametrize(
    ("to_go", "lag"), [(0, "0 blocks"), (1, "1 block"), (12, "12 blocks"), (None, "?")]
)
def test_text__originator_of_the_chain__lags_by_blocks(to_go: int | None, lag: str) -> None:
    status = healthy()
    assert status.live is not None

    text = as_text(replace(status, live=replace(status.live, blocks_to_go=to_go)))

    [row] = [line.split() for line in text.splitlines() if line.split()[:2] == ["0", "chain"]]
    assert row[3 : 3 + len(lag.split())] == lag.split()
    assert ("to go" in text) is (to_go is not None)


def test_text__one_stream_of_a_reader__is_no_plural() -> None:
    status = healthy()
    assert status.live is not None

    text = as_text(replace(status, live=replace(status.live, reader_streams=1, peer_streams=2)))

    assert "streams: 1 of readers, 3 of other nodes here, 2 of other nodes' envelopes\n" in text


def test_text__without_a_running_node__says_what_is_not_known() -> None:
    text = as_text(healthy(live=None, no_live="read from the database alone"))

    assert "running      not known: read from the database alone" in text
    assert "repairs" not in text


@pytest.mark.parametrize("names", [Reason, NetworkReason, PeerState, OriginatorKind])
def test_guide__every_state__has_a_row(names: Any) -> None:
    guide = (DOCS / "node.md").read_text()

    rows = set(re.findall(r"^\| `([a-z_]+)` \|", guide, re.MULTILINE))

    assert {each.value for each in names} <= rows
