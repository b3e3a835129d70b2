"""A look at a network as JSON and as text, and the reasons for attention that it has."""

from __future__ import annotations

import json
from dataclasses import replace

from chainkit.terminal.facts import LINE_WIDTH
from chainkit_node.inspection.network import (
    Accusation,
    NetworkReason,
    NetworkStatus,
    NodeAnswer,
    find_network_attention,
    network_as_json,
)
from chainkit_node.inspection.network_text import network_as_text
from chainkit_node.inspection.snapshot import BlockStatus

URL = "https://node.example.org"
GOOD = NodeAnswer(100, URL, True, "SERVING", None, 0.004, {0: 9, 100: 5, 200: 7}, 2)
BEHIND = NodeAnswer(200, URL, True, None, None, 0.05, {0: 8, 100: 0, 200: 7}, None)
DEAD = NodeAnswer(
    300, URL, True, None, "UNAVAILABLE: no connection", None, dict.fromkeys((0, 100, 200)), None
)
NETWORK = NetworkStatus(
    1_700_000_000.0,
    BlockStatus(12, "0x" + "1f" * 32),
    (GOOD, BEHIND),
    {0: 9, 100: 5, 200: 7},
    (),
)


def test_attention__all_nodes_answer__is_none_also_where_one_lags() -> None:
    assert find_network_attention(NETWORK) == ()


def test_attention__silent_refusing_and_accused_nodes__are_named() -> None:
    nodes = (
        replace(GOOD, health="NOT_SERVING"),
        DEAD,
        replace(DEAD, node_id=400, is_enabled=False),
    )
    accused = Accusation(100, 2, 0, (200,)), Accusation(200, 0, 9, (100, 200))

    found = find_network_attention(replace(NETWORK, nodes=nodes, accusations=accused))

    assert [(each.reason, each.node_id) for each in found] == [
        (NetworkReason.NODE_ACCUSED, 100),
        (NetworkReason.NODE_NOT_SERVING, 100),
        (NetworkReason.NODE_SILENT, 300),
    ]
    assert found[0].text == "node 100: 2 proved failures, hosted by 200"


def test_text__node_of_another_make__has_one_line_for_what_it_lacks() -> None:
    other = replace(BEHIND, lacks=("comparisons of logs", "topic heads", "reports"))

    text = network_as_text(replace(NETWORK, nodes=(GOOD, other)))

    [line] = [each for each in text.splitlines() if "lacks" in each]
    assert line.strip() == "node 200 lacks comparisons of logs, topic heads, reports"


def test_json__of_a_look__has_lags_by_originator_and_is_json() -> None:
    content = json.loads(json.dumps(network_as_json(replace(NETWORK, nodes=(GOOD, BEHIND, DEAD)))))

    assert [each["lag"] for each in content["nodes"]] == [
        {"0": 0, "100": 0, "200": 0},
        {"0": 1, "100": 5, "200": 0},
        {"0": None, "100": None, "200": None},
    ]
    assert content["highest"] == {"0": 9, "100": 5, "200": 7}
    assert [each["reason"] for each in content["attention"]] == ["node_silent"]


def test_text__of_a_look__has_originators_against_nodes() -> None:
    text = network_as_text(replace(NETWORK, nodes=(GOOD, BEHIND, DEAD)))
    rows = [line.split() for line in text.splitlines()]

    assert text.startswith("network      2 of 3 nodes answer, 2023-11-14T22:13:20Z\n")
    assert "attention    node 300 does not answer: UNAVAILABLE: no connection" in text
    assert ["0", "9", "9", "8", "(-1)", "-"] in rows
    assert ["100", "5", "5", "0", "(-5)", "-"] in rows
    assert ["200", "enabled", "not", "told", "50", "ms", "?", URL] in rows
    assert "accused      nobody" in text


def test_text__many_nodes_and_long_numbers__fits_a_terminal() -> None:
    ids = range(4_294_967_200, 4_294_967_295, 5)
    held = dict.fromkeys((0, *ids), 10**9)
    nodes = tuple(replace(GOOD, node_id=each, url=URL * 5, held=held) for each in ids)
    highest = dict.fromkeys((0, *ids), 10**9 + 12)

    lines = network_as_text(replace(NETWORK, nodes=nodes, highest=highest)).splitlines()

    assert [line for line in lines if len(line) > LINE_WIDTH] == []
    assert sum(line.lstrip().startswith("originator") for line in lines) > 1
