"""Metrics, health and readiness of a reading process."""

from __future__ import annotations

import json

from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reader_health import STALE_SECONDS, ReaderHealth


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_readyz__database_that_answers_and_falls_silent__says_so() -> None:
    clock = Clock()
    health = ReaderHealth(NodeMetrics(), clock)
    readyz = health.paths()["/readyz"]

    before = readyz()
    health.answered()
    clock.seconds += STALE_SECONDS
    answered = readyz()
    clock.seconds += 1
    silent = readyz()

    assert [each.status for each in (before, answered, silent)] == [503, 200, 503]
    assert "value" not in json.loads(before.body)["checks"]["database_age"]
    assert json.loads(silent.body)["checks"]["database_age"]["value"] == STALE_SECONDS + 1


def test_metrics__of_a_reading_process__are_the_node_s() -> None:
    metrics = NodeMetrics()
    metrics.sent("QueryEnvelopes", 3)

    answer = ReaderHealth(metrics).paths()["/metrics"]()

    assert answer.status == 200
    assert b'chainkit_node_envelopes_sent_total{method="QueryEnvelopes"} 3.0' in answer.body
