from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chainkit import __version__
from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.heads import HeadWatcher
from chainkit.errors import (
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    ReorgTooDeep,
    StoreUnavailable,
)
from chainkit_indexer.monitoring.health import Health
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.metrics import Metrics
from support.indexer.loop_results import FIRST_TIMESTAMP, Clock, advanced, idle, rolled_back


class Watched:
    """A scrape of one loop."""

    def __init__(self) -> None:
        self.clock, self.wall = Clock(), Clock(FIRST_TIMESTAMP + 10)
        self.health = Health(ReadyLimits(), self.clock, self.wall)
        self.metrics = Metrics(self.health, self.wall)

    def succeeded(self, result: Any, seconds: float = 0.02) -> None:
        self.health.succeeded(result, seconds)
        self.metrics.succeeded(result, seconds)

    def failed(self, error: Any) -> None:
        self.health.failed(error)
        self.metrics.failed(error)

    def scrape(self) -> dict[str, float]:
        """Sample name with its labels to value, without the prefix."""
        families = text_string_to_metric_families(self.metrics.text().decode())
        return {
            sample.name.removeprefix("chainkit_indexer_")
            + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): (
                sample.value
            )
            for family in families
            for sample in family.samples
        }

    def assert_shows(self, samples: dict[str, float]) -> None:
        found = self.scrape()
        assert {name: found.get(name) for name in samples} == samples


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def heads() -> Iterator[HeadWatcher]:
    with HeadWatcher(None, poll_seconds=1) as watcher:
        yield watcher


def test_scrape__before_the_first_step__shows_no_height_that_is_not_known(
    watched: Watched,
) -> None:
    found = watched.scrape()

    assert found["envelopes_total"] == 0
    assert found["ready"] == 0
    assert not {"head_block", "cursor_block", "final_block", "lag_blocks"} & found.keys()
    assert [name for name in found if name.startswith("build_info")] == [
        f"build_info,python={platform.python_version()},version={__version__}"
    ]


def test_scrape__after_steps__shows_heights_ages_and_counts(watched: Watched) -> None:
    watched.succeeded(advanced(10, head=12, envelopes=7, quarantined=2, final_block=4), 0.03)
    watched.clock.seconds += 5
    watched.succeeded(idle(10, head=12))

    watched.assert_shows(
        {
            "head_block": 12,
            "cursor_block": 10,
            "final_block": -1,
            "lag_blocks": 2,
            "head_timestamp_seconds": FIRST_TIMESTAMP + 12,
            "head_age_seconds": 5,
            "cursor_age_seconds": 5,
            "step_age_seconds": 0,
            "last_success_timestamp_seconds": FIRST_TIMESTAMP + 10,
            "sequence_id,originator=0": 10,
            "envelopes_total": 7,
            "quarantined_total": 2,
            "reorgs_total": 0,
            "step_seconds_count,result=advanced": 1,
            "step_seconds_sum,result=advanced": 0.03,
            "step_seconds_bucket,le=0.025,result=idle": 1,
            "database_up": 1,
            "ready": 1,
            "check,check=cursor": 1,
        }
    )


def test_scrape__after_a_reorg__shows_its_depth(watched: Watched) -> None:
    watched.succeeded(rolled_back(5, depth=20))

    watched.assert_shows(
        {
            "reorgs_total": 1,
            "retracted_total": 22,
            "reorg_depth_blocks_bucket,le=16.0": 0,
            "reorg_depth_blocks_bucket,le=32.0": 1,
            "step_seconds_count,result=rolled_back": 1,
        }
    )


def test_scrape__after_errors__counts_them_by_class(watched: Watched) -> None:
    for _ in range(3):
        watched.failed(InconsistentAnswer("logs", "all", "some"))
    watched.failed(EndpointUnavailable("http://node", "an answer", "none"))
    watched.failed(StoreUnavailable("database", "an answer", "none"))

    watched.assert_shows(
        {
            "errors_total,kind=inconsistent_answer": 3,
            "errors_total,kind=endpoint_unavailable": 1,
            "errors_total,kind=store_unavailable": 1,
            "contradictions": 3,
            "database_up": 0,
            "check,check=sequence": 0,
        }
    )


def test_scrape__loop_ended__names_the_error(watched: Watched) -> None:
    error = ReorgTooDeep("chain", "a", "b")
    watched.health.stopped(error)
    watched.metrics.stopped(error)

    assert watched.scrape()["stopped,kind=reorg_too_deep"] == 1


def test_scrape__database_of_before__shows_where_its_counters_stand(watched: Watched) -> None:
    watched.metrics.knows({0: 314, 7: 2**40})

    found = watched.scrape()

    assert found["sequence_id,originator=0"] == 314
    assert found["sequence_id,originator=7"] == 2**40


def test_scrape__two_indexers_in_one_process__do_not_share_a_registry() -> None:
    one, another = Watched(), Watched()
    one.succeeded(advanced(1, envelopes=5))

    assert one.scrape()["envelopes_total"] == 5
    assert another.scrape()["envelopes_total"] == 0


def test_scrape__endpoints__shows_their_state_traffic_and_errors(
    watched: Watched, heads: HeadWatcher
) -> None:
    good, bad = Endpoint.connect("http://good/key"), Endpoint.connect("http://bad/key")
    pool = EndpointPool([good, bad])
    pool.failed(bad, RateLimited("http://bad", "an answer", "HTTP 429"))
    pool.failed(bad, InconsistentAnswer("logs at http://bad", "all", "some"))
    watched.metrics.watch(pool, heads, dict, int)

    watched.assert_shows(
        {
            "endpoint_state,endpoint=http://good,state=available": 1,
            "endpoint_state,endpoint=http://bad,state=available": 0,
            "endpoint_state,endpoint=http://bad,state=cooling": 1,
            "endpoint_consecutive_failures,endpoint=http://bad": 2,
            "endpoint_errors_total,endpoint=http://bad,kind=rate_limited": 1,
            "endpoint_errors_total,endpoint=http://bad,kind=inconsistent_answer:logs": 1,
            "endpoint_requests_total,endpoint=http://good": 0,
        }
    )


def test_scrape__subscription__shows_its_state_and_what_became_of_it(
    watched: Watched, heads: HeadWatcher
) -> None:
    pool = EndpointPool([Endpoint.connect("http://good/key")])

    watched.metrics.watch(pool, heads, dict, int)

    watched.assert_shows(
        {
            "websocket_state,state=off": 1,
            "websocket_state,state=subscribed": 0,
            "websocket_notifications_total": 0,
            "websocket_reconnects_total": 0,
            "websocket_mute_total": 0,
        }
    )


def test_scrape__disks_of_folders__are_shown_once_and_only_while_they_are_there(
    watched: Watched, tmp_path: Path
) -> None:
    for folder in (tmp_path, tmp_path, tmp_path / "gone"):
        watched.metrics.watch_disk(folder)

    found = {name: value for name, value in watched.scrape().items() if name.startswith("disk_")}

    assert list(found) == [f"disk_bytes,folder={tmp_path}", f"disk_free_bytes,folder={tmp_path}"]
    size, free = found.values()
    assert 0 < free < size
