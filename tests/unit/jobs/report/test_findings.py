"""The matrix of findings, and how much of the evidence the page holds."""

from decimal import Decimal
from typing import Any

import pytest

from chainkit_jobs.findings import MEANINGS, Code
from chainkit_jobs.report.findings import MOST_SHOWN, findings_matrix
from chainkit_jobs.report.formats import ENVELOPE_SHOWN
from chainkit_jobs.report.page import render_report
from support.audit.report_input import finding, report_input


def many(count: int, **changes: Any) -> list[dict[str, Any]]:
    return [finding(sequence_id=Decimal(n), **changes) for n in range(1, count + 1)]


def test_matrix__codes_and_nodes__gravest_first_and_chain_before_nodes() -> None:
    found = [
        *many(2, code="ENVELOPE_MISSING", node_id=200),
        *many(1, code="ENVELOPE_ALTERED", node_id=300),
        *many(1, code="CHAIN_SEQUENCE_GAP", node_id=None),
    ]

    matrix = findings_matrix(found, [100, 200])

    [table] = matrix.tables
    assert table.columns == (None, 200, 300)
    assert [
        (code.value, [group.count if group else 0 for group in cells]) for code, cells in table.rows
    ] == [
        ("CHAIN_SEQUENCE_GAP", [1, 0, 0]),
        ("ENVELOPE_ALTERED", [0, 0, 1]),
        ("ENVELOPE_MISSING", [0, 2, 0]),
    ]
    assert matrix.faultless == (100,)
    assert [group.about for group in matrix.groups] == ["chain export", "node 300", "node 200"]


def test_matrix__more_nodes_than_fit_on_paper__are_divided_into_tables() -> None:
    found = [*many(1, node_id=None), *(row for n in range(1, 10) for row in many(1, node_id=n))]
    found += many(1, node_id=9, code="ENVELOPE_MISSING")

    tables = findings_matrix(found, []).tables

    assert [table.columns for table in tables] == [(None, *range(1, 8)), (8, 9)]
    assert [len(table.rows) for table in tables] == [1, 2]


def test_matrix__every_code__is_found_or_named_as_not_found() -> None:
    matrix = findings_matrix(many(1), [100])

    assert set(matrix.not_found) == set(Code) - {Code.ENVELOPE_ALTERED}
    ranks = [MEANINGS[code].severity.rank for code in matrix.not_found]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize(("count", "hidden"), [(MOST_SHOWN, 0), (MOST_SHOWN + 3, 3)])
def test_matrix__more_than_are_shown__are_counted_all_the_same(count: int, hidden: int) -> None:
    [group] = findings_matrix(many(count), [100]).groups

    assert (group.count, len(group.shown), group.hidden) == (count, MOST_SHOWN, hidden)
    assert [row["sequence_id"] for row in group.shown[:2]] == [1, 2]


def test_matrix__hundreds_of_nodes__shows_fewer_of_each_and_folds_them() -> None:
    found = [row for node_id in range(400) for row in many(5, node_id=node_id)]

    matrix = findings_matrix(found, [])

    assert {len(group.shown) for group in matrix.groups} == {3}
    assert not matrix.is_unfolded


def test_render__more_findings_than_shown__says_how_many_and_in_which_file() -> None:
    page = render_report(report_input(findings=many(MOST_SHOWN + 3)))

    assert "3 more stand in findings.jsonl and\nfindings.parquet, by code ENVELOPE_ALTERED" in page
    assert page.count('<details class="finding">') == MOST_SHOWN


def test_render__few_findings__are_open_and_printed() -> None:
    page = render_report(report_input())

    assert '<main class="unfolded">' in page
    assert '<details class="group" open>' in page


def test_render__cell_of_the_matrix__leads_to_its_evidence() -> None:
    page = render_report(report_input(findings=many(1, code="CHAIN_SEQUENCE_GAP", node_id=None)))

    assert '<a href="#CHAIN_SEQUENCE_GAP-chain">1</a>' in page
    assert '<p id="CHAIN_SEQUENCE_GAP-chain">' in page


def test_render__long_envelope__shows_its_start_and_says_so() -> None:
    page = render_report(report_input(findings=[finding(envelope=b"\xee" * (ENVELOPE_SHOWN + 1))]))

    assert "ee" * ENVELOPE_SHOWN in page
    assert "ee" * (ENVELOPE_SHOWN + 1) not in page
    assert "(the first 1\u202f024; all of them stand in findings.jsonl under this id)" in page


def test_render__finding_without_envelope__says_none() -> None:
    page = render_report(report_input(findings=[finding(code="ENVELOPE_MISSING", envelope=None)]))

    assert "<dt>envelope as served</dt><dd>none</dd>" in page
    assert 'class="bytes"' not in page


def test_render__empty_envelope__is_one_of_0_bytes() -> None:
    page = render_report(report_input(findings=[finding(envelope=b"")]))

    assert "<dd>0 bytes</dd>" in page
