"""The monitor of a node over HTTP: the indexer's numbers and the node's in one scrape."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chainkit.service.monitor_server import Answer
from chainkit_indexer.follow.loop import StopRequest
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_node.serving.metrics import NodeMetrics
from support.indexer.loop_results import logging_restored


def test_monitor__of_a_node__answers_with_the_indexers_numbers_and_its_own() -> None:
    with logging_restored(), Monitor(StopRequest(), listen="127.0.0.1:0") as monitor:
        before = scrape(monitor)
        metrics = NodeMetrics()
        monitor.also_reports(metrics.text)
        metrics.refused("QueryEnvelopes", "INVALID_ARGUMENT")
        found = scrape(monitor)

    assert "chainkit_indexer_ready" in before and "chainkit_node_refusals" not in before
    assert found[: len(before)] == before
    assert found.count("chainkit_node_refusals") == 1
    assert len(set(found)) == len(found)


def scrape(monitor: Monitor) -> list[str]:
    """The names of all families, in their order."""
    with urlopen(f"http://{monitor.address}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return [family.name for family in text_string_to_metric_families(text)]


def test_monitor__of_a_node__answers_more_paths_from_when_it_is_told() -> None:
    with logging_restored(), Monitor(StopRequest(), listen="127.0.0.1:0") as monitor:
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://{monitor.address}/more", timeout=5)
        answer = Answer(200, "text/plain", b"more", {"X-More": "yes"})
        monitor.also_serves({"/more": lambda: answer})
        with urlopen(f"http://{monitor.address}/more", timeout=5) as found:
            assert (found.read(), found.headers["X-More"]) == (b"more", "yes")
        assert "chainkit_indexer_ready" in scrape(monitor)
