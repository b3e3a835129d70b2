import pytest

from chainkit.types import Node
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.node_tables.registry_status import registry_statuses

Change = tuple[int, int, bool]
UNREGISTERED, DISABLED = Code.NODE_UNREGISTERED, Code.NODE_DISABLED


def standings(*changes: Change, first: int = 1, last: int = 20) -> list[tuple[object, ...]]:
    history = [((block, log), Node(100, b"", "", status)) for block, log, status in changes]
    return [
        (each.code, each.first, each.last, each.log_index)
        for each in registry_statuses(100, history, first, last)
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], [(UNREGISTERED, 1, 20, None)]),
        ([(1, 0, True)], []),
        ([(2, 0, True)], [(UNREGISTERED, 1, 1, None)]),
        ([(21, 0, True)], [(UNREGISTERED, 1, 20, None)]),
        ([(1, 0, False)], [(DISABLED, 1, 20, 0)]),
        ([(1, 0, True), (5, 3, False), (8, 1, True)], [(DISABLED, 5, 7, 3)]),
        ([(1, 0, True), (20, 3, False)], [(DISABLED, 20, 20, 3)]),
        ([(1, 0, True), (21, 3, False)], []),
        # An address that changes while the node is disabled does not end the run.
        ([(1, 0, True), (5, 3, False), (6, 0, False)], [(DISABLED, 5, 20, 3)]),
        # A block's last event decides.
        ([(1, 0, True), (5, 3, False), (5, 4, True)], []),
        ([(3, 0, False)], [(UNREGISTERED, 1, 2, None), (DISABLED, 3, 20, 0)]),
    ],
)
def test_standings__history__is_told_by_runs_of_blocks(
    changes: list[Change], expected: list[tuple[object, ...]]
) -> None:
    assert standings(*changes) == expected


def test_standings__range_begins_within_a_run__the_event_is_not_in_it() -> None:
    changes = [(1, 0, True), (5, 3, False), (12, 1, True)]

    assert standings(*changes, first=7) == [(DISABLED, 7, 11, None)]
    assert standings(*changes, first=12) == []
    assert standings(*changes, last=6) == [(DISABLED, 5, 6, 3)]
