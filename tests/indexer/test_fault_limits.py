from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import (
    EndpointTimedOut,
    InconsistentAnswer,
    RateLimited,
    RetryableChainError,
)
from chainkit_indexer.types import Advanced
from support.endpoints import broken_answers, faults
from support.endpoints.endpoints import LONGEST_ANSWER_BYTES, impatient_endpoint
from support.endpoints.fault_proxy import Fault, Reply
from support.endpoints.fault_trial import Scene, Trial, by_name, live_through
from support.indexer.follower import Follower
from support.indexer.honest_rows import chain_tables
from support.vectors import load

pytest_plugins = ["support.endpoints.fault_fixtures"]

LOG_REFUSALS = load("range_refusals")
SHRINKS = [case for case in LOG_REFUSALS if case["kind"] in ("range", "unknown")]
RESTS = [case for case in LOG_REFUSALS if case["kind"] in ("rate", "behind")]


def worded(case: dict[str, Any], **limit: int) -> Fault:
    more = {"data": case["data"]} if "data" in case else {}
    refusal = faults.error(case["code"], case["message"], **more)
    return faults.range_limit(case["provider"], refusal, **limit)


def fresh_follower(scene: Scene, folder: Path) -> Follower:
    location = shutil.copy(scene.empty, folder / "range.db")
    return Follower(scene.branches.before.record, location)


def test_follow__range_limit_in_any_words__shrinks_within_the_step(
    scene: Scene, trial: Trial, tmp_path: Path
) -> None:
    for case in SHRINKS:
        fault = worded(case, blocks=3)
        known = trial.proxy.delivered[fault.name]
        trial.proxy.arm(fault)
        with fresh_follower(scene, tmp_path) as follower:
            result = follower.step(trial.endpoint)
            scene.honest.check(follower.store)
        trial.proxy.lift()
        assert isinstance(result, Advanced), case
        # From sixteen blocks by halves at most.
        assert 1 <= trial.proxy.delivered[fault.name] - known <= 4, case


def test_follow__refused_for_another_reason__does_not_take_it_for_a_range(
    scene: Scene, trial: Trial, tmp_path: Path
) -> None:
    expected = {"rate": RateLimited, "behind": InconsistentAnswer}
    for case in RESTS:
        fault = worded(case, blocks=3)
        trial.proxy.arm(fault, times=1)
        with fresh_follower(scene, tmp_path) as follower:
            with pytest.raises(expected[case["kind"]]) as caught:
                follower.step(trial.endpoint)
            assert getattr(caught.value, "retry_after", None) == case.get("retry_after"), case
            assert isinstance(follower.step(trial.endpoint), Advanced)
        trial.proxy.lift()


@pytest.mark.parametrize("limit", [{"blocks": 1}, {"blocks": 5}, {"blocks": 0, "results": 3}])
def test_follow__range_limit_that_stays__ends_as_a_clean_run(
    trial: Trial, limit: dict[str, int]
) -> None:
    for case in SHRINKS[::20]:
        trial.proxy.arm(worded(case, **limit), probability=0.5)
    trial.proxy.arm(worded(SHRINKS[0], **limit))
    trial.catch_up()
    trial.fork()
    trial.catch_up()

    assert trial.proxy.delivered.total() >= 1
    assert chain_tables(trial.follower.store, with_journal=True) == trial.scene.journal


@pytest.mark.parametrize("status", [400, 413, 422])
def test_follow__range_limit_with_an_http_status__shrinks_within_the_step(
    trial: Trial, status: int
) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"block range is too wide"}}'
    )
    is_wide = faults.range_limit("HTTP", lambda *_: {"too": "wide"}, blocks=3).of_call
    assert is_wide is not None
    trial.proxy.arm(
        Fault("too wide", of_reply=lambda *_: Reply(body, status), methods=faults.LOGS),
        where=lambda call: is_wide(call, {}) != {},
    )

    trial.catch_up()

    assert trial.proxy.delivered["too wide"]


def test_follow__endpoint_hangs__gives_up_and_goes_on_when_it_answers(trial: Trial) -> None:
    trial.endpoint = impatient_endpoint(trial.proxy.url, timeout_seconds=0.1)
    live_through(trial, broken_answers.HANG)

    assert trial.proxy.delivered["hang"]
    assert {type(error) for error in trial.errors} == {EndpointTimedOut}
    assert chain_tables(trial.follower.store) == trial.scene.tables


def test_follow__answer_drips__gives_up_before_it_ends(trial: Trial) -> None:
    trial.endpoint = impatient_endpoint(trial.proxy.url, timeout_seconds=0.1)
    trial.proxy.arm(broken_answers.DRIP)

    trial.step()

    assert [type(error) for error in trial.errors] == [EndpointTimedOut]
    assert trial.proxy.bytes_sent < 1000


@pytest.mark.parametrize("fault", broken_answers.GIGANTIC, ids=by_name)
def test_follow__gigantic_answer__is_not_read_to_its_end(trial: Trial, fault: Fault) -> None:
    live_through(trial, fault)

    delivered = trial.proxy.delivered[fault.name]
    assert delivered
    # The bytes sent were read, or wait in the sockets' buffers.
    assert trial.proxy.bytes_sent < delivered * 4 * LONGEST_ANSWER_BYTES
    assert all(isinstance(error, RetryableChainError) for error in trial.errors)
    assert chain_tables(trial.follower.store) == trial.scene.tables
