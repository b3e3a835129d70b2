from __future__ import annotations

from dataclasses import replace

import pytest

from chainkit.chain import EndpointState
from chainkit.errors import RetryableChainError
from support.endpoints import broken_answers, faults
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.fault_trial import Trial, by_name, follow_both_branches, live_through
from support.endpoints.restless_pool import RestlessPool
from support.indexer.honest_rows import chain_tables
from support.seeds import cases_of_the_day

pytest_plugins = ["support.endpoints.fault_fixtures"]

# Fields of a wrong type are many and alike.
ALIKE = broken_answers.SHAPELESS_ANSWERS
ALL_FAULTS = (
    *faults.UNTRUE,
    *cases_of_the_day(ALIKE, 4),
    *(fault for fault in broken_answers.BROKEN if fault not in ALIKE),
)
BEHIND = tuple(fault for fault in ALL_FAULTS if fault.name in faults.STAYS_BEHIND)
NEVER_LIFTED = tuple(
    fault
    for fault in cases_of_the_day((*ALL_FAULTS, *broken_answers.REFUSALS), 3)
    if fault not in BEHIND
)


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=by_name)
def test_follow__fault_comes_and_goes__ends_as_a_clean_run(trial: Trial, fault: Fault) -> None:
    live_through(trial, fault)

    assert trial.proxy.delivered[fault.name]
    assert all(isinstance(error, RetryableChainError) for error in trial.errors), trial.errors
    assert chain_tables(trial.follower.store) == trial.scene.tables


@pytest.mark.parametrize("fault", (*faults.HARMLESS, broken_answers.OUT_OF_ORDER), ids=by_name)
def test_follow__unusual_but_true__needs_no_second_try(trial: Trial, fault: Fault) -> None:
    trial.proxy.arm(fault)
    trial.catch_up()
    trial.fork()
    trial.catch_up()

    assert trial.proxy.delivered[fault.name]
    assert chain_tables(trial.follower.store, with_journal=True) == trial.scene.journal


@pytest.mark.parametrize("fault", NEVER_LIFTED, ids=by_name)
def test_follow__one_endpoint_never_stops_lying__another_one_is_followed(
    trial: Trial, pool: RestlessPool, honest_proxy: FaultProxy, fault: Fault
) -> None:
    trial.proxy.arm(fault)

    follow_both_branches(trial, pool, honest_proxy)

    assert trial.proxy.delivered[fault.name]
    assert pool.errors_of(0)
    assert not pool.errors_of(1)
    assert chain_tables(trial.follower.store) == trial.scene.tables


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (faults.LOG_FAULTS[0], "inconsistent_answer:logs"),
        (faults.OTHER_CHAIN[0], "wrong_chain"),
        (broken_answers.RATE_LIMITS[0], "rate_limited"),
        (broken_answers.RETRY_IN_A_SECOND, "rate_limited"),
        (broken_answers.ABSENT[0], "endpoint_unavailable"),
    ],
    ids=lambda value: by_name(value) if isinstance(value, Fault) else None,
)
def test_pool__fault_of_a_kind__is_counted_against_the_liar_alone(
    trial: Trial, pool: RestlessPool, honest_proxy: FaultProxy, fault: Fault, kind: str
) -> None:
    trial.proxy.arm(fault)

    follow_both_branches(trial, pool, honest_proxy)

    # One step may meet a lie in several answers.
    assert 0 < pool.errors_of(0)[kind] <= trial.proxy.delivered[fault.name]
    assert set(pool.errors_of(0)) == {kind}
    assert not pool.errors_of(1)


@pytest.mark.parametrize("fault", BEHIND, ids=by_name)
def test_follow__one_endpoint_stays_behind__holds_what_it_has_and_no_more(
    trial: Trial, fault: Fault
) -> None:
    trial.proxy.arm(fault)
    trial.catch_up()
    trial.fork()
    for _ in range(6):
        trial.step()

    trial.proxy.lift()
    trial.catch_up()
    assert chain_tables(trial.follower.store) == trial.scene.tables


def test_pool__endpoint_changes_its_chain__is_left_at_once(
    trial: Trial, pool: RestlessPool, honest_proxy: FaultProxy
) -> None:
    pool.step(trial.follower.step)
    trial.proxy.arm(*faults.OTHER_CHAIN)

    follow_both_branches(trial, pool, honest_proxy)

    assert pool.pool.statistics()[0].state is EndpointState.QUARANTINED
    assert chain_tables(trial.follower.store) == trial.scene.tables


def test_pool__one_endpoint_refuses_connections__comes_back_when_it_listens(
    trial: Trial, pool: RestlessPool, honest_proxy: FaultProxy
) -> None:
    trial.proxy.refuse_connections()
    trial.follower.settings = replace(trial.follower.settings, page_blocks=1)
    for _ in range(8):
        pool.step(trial.follower.step)
    assert pool.errors_of(0)["endpoint_unavailable"]
    trial.proxy.accept_connections()
    honest_proxy.refuse_connections()

    follow_both_branches(trial, pool, trial.proxy)

    assert chain_tables(trial.follower.store) == trial.scene.tables


WHOLE_BLOCKS_MISSING = tuple(
    fault
    for fault in faults.LOG_FAULTS
    if fault.name in ("logs: none of them", "logs: those of the last block missing")
)
NO_STATE = next(fault for fault in faults.COUNTER_FAULTS if fault.name == "counter: no state")


@pytest.mark.parametrize("fault", WHOLE_BLOCKS_MISSING, ids=by_name)
def test_follow__logs_missing_where_no_counter_tells__is_told_by_the_bloom_filter(
    trial: Trial, fault: Fault
) -> None:
    live_through(trial, fault, NO_STATE)

    assert trial.proxy.delivered[fault.name]
    assert chain_tables(trial.follower.store) == trial.scene.tables


def test_follow__filters_that_no_logs_make_up_where_no_counter_tells__are_not_believed(
    trial: Trial,
) -> None:
    live_through(trial, faults.FULL_OF_BLOOM, NO_STATE)

    assert trial.proxy.delivered[faults.FULL_OF_BLOOM.name]
    assert chain_tables(trial.follower.store) == trial.scene.tables
