"""The rows under one key are compared without Spark."""

from decimal import Decimal
from typing import Any

import pytest

from chainkit_jobs.reconcile.bins import Bins
from chainkit_jobs.reconcile.finding_rows import key_findings, row_findings
from chainkit_jobs.reconcile.key_comparison import (
    ComparedNode,
    GivenOut,
    KeyComparison,
    KeyCounts,
    begin,
    covered,
    node_counts,
    read_tally,
)
from chainkit_jobs.reconcile.served import SERVED

NODE = ComparedNode(100, first_block=10, last_block=20, given_out={0: GivenOut(8)})
BINS = Bins(10, 25, 8)
RIGHT, WRONG = b"\x01" * 32, b"\x02" * 32
HASH, OTHER_HASH = b"\x0a" * 32, b"\x0b" * 32
KEY = (0, Decimal(7))


def held(block: int = 12, reason: str | None = None, digest: bytes = RIGHT) -> dict[str, Any]:
    return {
        "digest": digest,
        "block_number": block,
        "log_index": 3,
        "transaction_hash": HASH,
        "quarantine_reason": reason,
    }


def served(digest: bytes | None = RIGHT, row_index: int = 0, **other: Any) -> dict[str, Any]:
    row = dict.fromkeys(SERVED.names) | {"node_id": 100, "row_index": row_index, "digest": digest}
    return row | {"transaction_hash": HASH, "is_in_one_form": True} | other


Row = dict[str, Any]


def compare(chain: list[Row], rows: list[Row], node: ComparedNode = NODE) -> KeyComparison:
    comparison = begin(KEY, chain, node)
    for row in rows:
        comparison.see(row)
    return comparison


def findings(chain: list[Row], rows: list[Row]) -> list[Row]:
    comparison = compare(chain, rows)
    found = [finding for row in rows for finding in row_findings(comparison, row)]
    return [*key_findings(comparison), *found]


def codes(chain: list[Row], rows: list[Row]) -> list[str]:
    return [finding["code"] for finding in findings(chain, rows)]


UNREADABLE = served(None, transaction_hash=None, unreadable="no envelope")


@pytest.mark.parametrize(
    ("chain", "rows", "expected"),
    [
        ([held()], [served()], []),
        ([held()], [], ["ENVELOPE_MISSING"]),
        ([held(block=9)], [], []),
        ([held(block=21)], [], []),
        ([held(reason="not one")], [], []),
        ([held(reason="not one")], [served()], ["QUARANTINED_SERVED"]),
        # A rule of our own, which nodes of another make do not know (ADR 54).
        ([held(reason="readers differ on these bytes: X.y has a group")], [served()], []),
        ([held(reason="readers differ on these bytes: X.y has a group")], [], []),
        (
            [held(reason="not one")],
            [served(), served(WRONG, 1)],
            ["ENVELOPE_DUPLICATED", "QUARANTINED_SERVED", "ENVELOPE_ALTERED"],
        ),
        ([held()], [served(WRONG)], ["ENVELOPE_ALTERED"]),
        ([held(block=21)], [served(WRONG)], ["ENVELOPE_ALTERED"]),
        ([held()], [UNREADABLE], ["ENVELOPE_UNREADABLE"]),
        ([held()], [served(signature_problem="another's")], ["SIGNATURE_INVALID"]),
        ([held()], [served(), served(row_index=1)], ["ENVELOPE_DUPLICATED"]),
        (
            [held()],
            [served(), served(WRONG, 1)],
            ["ENVELOPE_DUPLICATED", "ENVELOPE_ALTERED"],
        ),
        # A row that the chain export holds twice, or lacks though it may, accuses nobody.
        ([held(), held(block=13)], [served(WRONG)], []),
        ([], [served()], []),
    ],
)
def test_judge__one_key__finds(
    chain: list[dict[str, Any]], rows: list[dict[str, Any]], expected: list[str]
) -> None:
    assert codes(chain, rows) == expected


@pytest.mark.parametrize(
    ("key", "highest", "is_invented"),
    [
        ((0, 8), 8, False),
        ((0, 9), 8, True),
        ((0, 9), None, False),
        ((0, 0), 8, True),
        ((0, 0), None, True),
        ((1, 3), 8, True),
    ],
)
def test_judge__a_key_that_the_chain_lacks__is_invented_where_no_counter_gave_it(
    key: tuple[int, int], highest: int | None, is_invented: bool
) -> None:
    node = ComparedNode(100, 10, 20, {0: GivenOut(highest)})

    comparison = begin((key[0], Decimal(key[1])), [], node)
    comparison.see(served())

    assert (comparison.is_invented, comparison.is_outside) == (is_invented, not is_invented)
    found = [finding["code"] for finding in row_findings(comparison, served())]
    assert found == ["ENVELOPE_INVENTED"] * is_invented


@pytest.mark.parametrize(
    ("sequence_id", "highest", "last", "is_undecided"),
    [(8, None, 8, False), (9, None, 8, True), (1, None, 0, True), (9, 9, 8, False)],
)
def test_judge__a_key_that_the_chain_lacks__is_undecided_above_all_that_was_given_out(
    sequence_id: int, highest: int | None, last: int, is_undecided: bool
) -> None:
    node = ComparedNode(100, 10, 20, {0: GivenOut(highest, last)})

    comparison = begin((0, Decimal(sequence_id)), [], node)
    comparison.see(served())

    assert (comparison.is_outside, comparison.is_undecided) == (True, is_undecided)


@pytest.mark.parametrize(
    ("is_whole", "is_invented", "is_undecided"), [(True, True, False), (False, False, True)]
)
def test_judge__sparse_id_that_the_chain_lacks__is_invented_where_the_export_is_whole(
    is_whole: bool, is_invented: bool, is_undecided: bool
) -> None:
    node = ComparedNode(100, 10, 20, {1: GivenOut(None, is_whole=is_whole)})

    comparison = begin((1, Decimal(17)), [], node)
    comparison.see(served())

    assert (comparison.is_invented, comparison.is_undecided) == (is_invented, is_undecided)
    assert begin((1, Decimal(17)), [held()], node).is_missing


def test_findings_of__altered__say_whether_the_transaction_is_another() -> None:
    rows = [served(WRONG), served(WRONG, 1, transaction_hash=OTHER_HASH)]

    found = findings([held()], rows)

    details = [row["detail"] for row in found if row["code"] == "ENVELOPE_ALTERED"]
    assert details == [
        "the right transaction, other envelope bytes",
        "names another transaction",
    ]
    assert [row["row_index"] for row in found] == [None, 0, 1]


def test_tally__verdicts__are_counted_by_node_and_bin_and_survive_their_text() -> None:
    tally = KeyCounts()
    for chain, rows in (
        ([held(block=12)], [served()]),
        ([held(block=16)], []),
        ([held(block=16)], [served(), UNREADABLE]),
        ([held(block=17, reason="not one")], [served()]),
        ([held(block=24)], []),
        ([], [served()]),
    ):
        tally.add(compare(chain, rows), BINS)
    silent = ComparedNode(200, 10, 20, {})

    tallies = [read_tally(tally.text()), KeyCounts()]

    assert node_counts(tallies, [NODE, silent]) == {
        100: {"expected": 3, "served": 5, "matched": 2, "outside": 1, "undecided": 0},
        200: {"expected": 0, "served": 0, "matched": 0, "outside": 0, "undecided": 0},
    }
    rows = [tuple(row.values()) for row in covered(tallies, BINS)]
    # Node, first and last block; expected, matched, missing, wrong, outside.
    assert rows == [
        (100, 10, 15, 1, 1, 0, 0, 0),
        (100, 16, 23, 2, 0, 1, 2, 0),
        (100, 24, 25, 1, 0, 0, 0, 1),
    ]


@pytest.mark.parametrize(("answered_to", "is_missing"), [(6, False), (7, True), (2**64 - 1, True)])
def test_begin__node_was_asked__what_it_did_not_reach_is_not_missing(
    answered_to: int, is_missing: bool
) -> None:
    node = ComparedNode(100, 10, 20, {0: GivenOut(8)}, answered_to={0: answered_to})

    assert begin(KEY, [held()], node).is_missing is is_missing
