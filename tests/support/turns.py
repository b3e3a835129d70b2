"""The test files that have their turn each third day: ``--of-the-day`` leaves out the others.

They are those that take longest and show at length, by many cases or at many places, what shorter
files show as well. `make test` plays a third of them, and all other files; `make test-all`, and
pytest without the option, play all (ADR 41). Each day's files take about as long.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

import pytest

from support.seeds import day_of_run

TURNS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "e2e/test_wheel",
        "jobs/test_cluster",
        "jobs/test_cost_digest",
        "jobs/test_hostile_exports",
        "jobs/test_other_contracts",
        "indexer/test_database_faults",
        "indexer/test_fault_limits",
        "indexer/test_faults",
        "indexer/test_state_machine",
        "council/test_signers_commands",
        "client/test_group_kills",
        "network/test_bot_page",
        "network/test_network_lies",
        "network/test_quiet_peers",
        "network/test_simulated_faults",
        "network/test_streams_after_reorg",
    ),
    (
        "e2e/test_chat",
        "jobs/test_import_amsterdam",
        "jobs/test_import_cryo",
        "jobs/test_import_etl",
        "jobs/test_import_faults",
        "jobs/test_import_public_datasets",
        "jobs/test_import_rewritten",
        "indexer/test_answers_left_out",
        "indexer/test_kill",
        "indexer/test_migrations",
        "indexer/test_provenance_commands",
        "council/test_simulation_layouts",
        "client/test_group_simulation",
        "network/test_client_commands",
        "network/test_network_faults",
        "network/test_node_kills",
        "network/test_simulated_lies",
        "network/test_status_page",
    ),
    (
        "e2e/test_localnet",
        "jobs/test_bundle",
        "jobs/test_cost",
        "jobs/test_fault_kinds",
        "jobs/test_node_answers",
        "jobs/test_node_tables",
        "jobs/test_report_browser",
        "jobs/test_rollup_exports",
        "jobs/test_spark_paths",
        "indexer/test_endpoint_exchanges",
        "indexer/test_fault_mixes",
        "indexer/test_liars",
        "council/test_gather",
        "client/test_client_stories",
        "network/test_client_among_liars",
        "network/test_drills",
        "network/test_gateway_waits",
        "network/test_watch",
    ),
)
"""Files below ``tests/``, without their ending, by the day of which each has its turn."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--of-the-day",
        action="store_true",
        help="leave out the files that have their turn on another day",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--of-the-day"):
        return
    left_out = files_of_other_days()
    of_other_days = [item for item in items if item.nodeid.partition(".py::")[0] in left_out]
    config.hook.pytest_deselected(items=of_other_days)
    items[:] = [item for item in items if item not in set(of_other_days)]


def files_of_other_days() -> frozenset[str]:
    """Return the files that the run's day leaves out, as pytest names them, without ``.py``."""
    turn = day_of_run().toordinal() % len(TURNS)
    others = (files for place, files in enumerate(TURNS) if place != turn)
    return frozenset(str(PurePath("tests", file)) for files in others for file in files)
