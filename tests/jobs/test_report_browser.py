"""The report of a real audit in a headless browser: offline, without scripts, on paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.signatures import SigningKey
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.audit import run_audit
from chainkit_jobs.reconcile.coverage import COVERAGE
from chainkit_jobs.reconcile.outputs import write_outputs
from chainkit_jobs.reconcile.scope import Options
from chainkit_jobs.report.page import SECTIONS, render_report
from support.audit.audit_exports import (
    Post,
    Row,
    Serve,
    administration,
    base_posts,
    hash_of,
    honest,
    key_of,
    registered,
    write_node,
)
from support.audit.inputs import read_inputs
from support.audit.report_input import (
    TRUST,
    costs,
    coverage_row,
    finding,
    node,
    refused,
    report_input,
    summary,
)
from support.browser import Seen, look_at
from support.chains.proved_chain import proved_chain, sent_of

WIDTHS = ("1280", "390")
MEDIA = (*WIDTHS, "paper")


def omitting(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
    return honest(posts[1:], key)


def altering(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
    return honest([replace(posts[0], block=11), *posts[1:]], key)


def signing_as_another(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
    return honest(posts, key_of(999))


SERVES: dict[int, Serve] = {100: honest, 200: omitting, 300: altering, 400: signing_as_another}
BEHIND, ON_A_FORK = 500, 600


@dataclass(frozen=True)
class Report:
    """An audit's folder, and what a browser says of its page."""

    folder: Path
    seen: Seen

    def rows(self, table: str) -> list[Row]:
        rows: list[Row] = pq.read_table(self.folder / f"{table}.parquet").to_pylist()
        return rows


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("audit")
    ids = (*SERVES, BEHIND, ON_A_FORK)
    registry = [registered(node_id, log_index=n) for n, node_id in enumerate(ids)]
    chain = proved_chain(sent_of(base_posts(), administration(registry, {})))
    chain.write(root / "chain")
    posts = [
        replace(post, transaction=chain.transaction_of(post.sequence_id)) for post in base_posts()
    ]

    def export(node_id: int, serve: Serve, **about: Any) -> tuple[None, Path]:
        key = key_of(node_id)
        about = {"to_block_hash": "0x" + chain.head_hash.hex()} | about
        return None, write_node(root / str(node_id), serve(posts, key), key, **about)

    nodes = [export(node_id, serve) for node_id, serve in SERVES.items()]
    last = "0x" + chain.hash_of(13).hex()
    nodes.append(
        export(BEHIND, lambda _, key: honest(posts[:4], key), to_block=13, to_block_hash=last)
    )
    nodes.append(export(ON_A_FORK, honest, to_block_hash="0x" + hash_of(20, "other").hex()))
    inputs = read_inputs(root / "chain", nodes)
    audit = run_audit(spark.sparkContext, inputs, chain.head_hash, Options(with_costs=True))
    write_outputs(root / "audit", audit)
    return Report(root / "audit", look_at(root / "audit" / "report.html"))


def test_report__opened_offline__asks_for_nothing_and_complains_of_nothing(report: Report) -> None:
    assert report.seen["requests"] == []
    assert report.seen["complaints"] == []


def test_report__opened__shows_each_section_and_plots_with_all_their_words(report: Report) -> None:
    assert report.seen["headings"][1:] == list(SECTIONS.values())
    plots = report.seen["plots"]
    assert len(plots) == 6
    assert all(plot["width"] > 300 and plot["height"] > 100 for plot in plots)
    assert [plot["cut"] for plot in plots] == [[]] * 6
    assert all(plot["label"] for plot in plots)


def test_report__on_a_screen_and_on_a_telephone__no_text_leaves_the_page(report: Report) -> None:
    assert report.seen["overflow"] == {width: [] for width in WIDTHS}


def test_report__number_in_the_matrix__leads_to_evidence_that_opens(report: Report) -> None:
    opened = report.seen["opened"]
    [first] = [row for row in report.rows("findings") if row["code"] == "ENVELOPE_ALTERED"]

    assert opened["target"] == "ENVELOPE_ALTERED-300"
    assert (opened["group"], opened["before"], opened["after"]) == (True, False, True)
    for value in (
        first["finding_id"],
        first["served_digest"].hex(),
        first["expected_digest"].hex(),
    ):
        assert value in opened["text"]


def test_report__printed__has_each_section_on_pages(report: Report) -> None:
    assert report.seen.printed_pages > 2
    assert set(SECTIONS.values()) <= set(report.seen.printed_headings)


def test_report__proved_export__names_the_hash_and_what_was_not_proved(report: Report) -> None:
    page = (report.folder / "report.html").read_text()
    trust = json.loads((report.folder / "summary.json").read_text())["trust"]

    assert trust["block_hash"] in page
    assert trust["not_proved"]
    assert all(sentence.split(":")[0] in page for sentence in trust["not_proved"])


def test_coverage__nodes_with_and_without_faults__each_payload_is_in_one_state(
    report: Report,
) -> None:
    rows = report.rows("coverage")
    totals = {
        node_id: tuple(
            sum(row[name] for row in rows if row["node_id"] == node_id)
            for name in ("expected", "matched", "missing", "wrong", "outside")
        )
        for node_id in sorted({row["node_id"] for row in rows})
    }

    assert pq.read_schema(report.folder / "coverage.parquet").equals(COVERAGE)
    assert totals == {
        100: (7, 7, 0, 0, 0),
        200: (7, 6, 1, 0, 0),
        300: (7, 6, 0, 1, 0),
        400: (7, 0, 0, 7, 0),
        BEHIND: (7, 3, 0, 0, 4),
    }
    assert {row["first_block"] for row in rows} == {10, 11, 12, 14, 15, 16, 17}


def test_report__costs__are_those_of_the_whole_export(report: Report) -> None:
    page = (report.folder / "report.html").read_text()

    assert "<dt>messages</dt><dd>8</dd>" in page
    assert "addMessage(bytes32,bytes)" in page


@pytest.mark.parametrize("width", MEDIA)
def test_report__any_medium__shows_each_verdict_and_all_of_the_strips(
    report: Report, width: str
) -> None:
    sight = report.seen["sight"][width]

    assert sight["verdicts"] == [
        "none",
        "ENVELOPE_MISSING 1",
        "ENVELOPE_ALTERED 1",
        "SIGNATURE_INVALID 7",
        "none",
        "not compared, see below",
    ]
    assert (sight["strips"], sight["hidden"], sight["broken"]) == (True, [], [])
    assert sight["first"].startswith("Not everything could be compared.")


# ------------------------------------------------------------------ what strangers and numbers do


LONG_NAME = "https://" + "node." * 60 + "example"
LACKING = [
    "not proved: the chain export (see --trust)",
    "not checked: signatures",
    "not known: the end of the contracts' counter",
]
MANY = range(4_294_967_284, 4_294_967_296)
"""Ids of twelve nodes, as long as they get."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """A page with twelve nodes, an export of nobody, long names and large numbers."""
    about = {"http_address": LONG_NAME, "from_block": 19_123_456, "to_block": 21_234_567}
    large = dict.fromkeys(("expected", "served", "matched", "undecided"), 123_456_789)
    codes = {code.value: 123_456_789 for code in (Code.REGISTRY_HISTORY_CONTRADICTS, *Code)[:4]}
    base = summary(outcome="could not compare", refused=[refused(folder="folder" * 20)])
    content = base | {
        "assurance": {"complete": False, "lacking": LACKING},
        "nodes": [node(n, **about, **large, findings=codes) for n in MANY],
        "chain": base["chain"] | {"from_block": 1, "to_block": 21_234_567, "payloads": 10**9},
        "findings_total": 10**9,
    }
    counts = {"matched": 10**9, "missing": 123_456, "wrong": 234_567, "outside": 345_678}
    strips = [
        coverage_row(block, **counts) | {"node_id": n, "last_block": block + 262_143}
        for n in MANY
        for block in range(1, 21_234_567, 262_144)
    ]
    page = tmp_path_factory.mktemp("crowded") / "report.html"
    page.write_text(
        render_report(report_input(summary=content, coverage=strips, costs=costs())),
        encoding="utf-8",
    )
    return look_at(page)


@pytest.mark.parametrize("width", MEDIA)
def test_report__many_nodes_and_long_names__each_verdict_is_in_sight(
    crowded: Seen, width: str
) -> None:
    verdicts = crowded["sight"][width]["verdicts"]

    assert len(verdicts) == len(MANY) + 1
    assert all(
        each.startswith("REGISTRY_HISTORY_CONTRADICTS 123 456 789, ") for each in verdicts[:-1]
    )
    assert all(each.endswith(" undecided 123 456 789") for each in verdicts[:-1])
    assert verdicts[-1] == "not compared, see below"


@pytest.mark.parametrize("width", MEDIA)
def test_report__many_nodes_and_large_numbers__the_strips_end_in_sight(
    crowded: Seen, width: str
) -> None:
    sight = crowded["sight"][width]

    assert (sight["strips"], sight["hidden"]) == (True, [])
    assert "21\u202f234\u202f567" in sight["labels"] or width != "390"
    assert sight["smallest"] > 9


@pytest.mark.parametrize("width", MEDIA)
def test_report__not_proved_nor_checked__the_first_words_say_so_before_anyone_scrolls(
    crowded: Seen, width: str
) -> None:
    assert crowded["sight"][width]["first"].startswith(
        "Not everything could be compared. Not proved: the chain export (see --trust). "
        "Not checked: signatures. Not known: the end of the contracts' counter."
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_report__large_numbers_and_shortened_hashes__stand_on_one_line(
    crowded: Seen, width: str
) -> None:
    assert crowded["sight"][width]["broken"] == []
    assert crowded["overflow"][width] == []


def test_report__hostile_text_and_many_nodes__is_still_only_text(tmp_path: Path) -> None:
    ids = range(100, 4_100, 100)
    many = summary(nodes=[node(n, http_address=LONG_NAME) for n in ids], trust=TRUST)
    found = [finding(node_id=n, detail="<img src=//x>" + "x" * 400) for n in ids]
    rows = [coverage_row(12, matched=0, wrong=1) | {"node_id": n} for n in ids]
    page = tmp_path / "report.html"
    page.write_text(render_report(report_input(summary=many, findings=found, coverage=rows)))

    seen = look_at(page)

    assert seen["requests"] == seen["complaints"] == []
    assert seen["overflow"] == {width: [] for width in WIDTHS}
    assert [plot["cut"] for plot in seen["plots"]] == [[]]
    assert seen["opened"]["after"]


FAULTY = """<!doctype html><meta charset="utf-8"><h1>seen</h1><h2 hidden>unseen</h2>
<img src="http://127.0.0.1:9/x.png"><p style="white-space: nowrap">{words}</p>
<figure><svg role="img" aria-label="cut" width="100" height="20"><text x="90" y="15">cut off
</text></svg></figure><script>console.log("ran")</script>"""


def test_look_at__faulty_page__sees_each_fault(tmp_path: Path) -> None:
    page = tmp_path / "faulty.html"
    page.write_text(FAULTY.format(words="too long " * 30))

    seen = look_at(page)

    assert seen["requests"] == ["http://127.0.0.1:9/x.png"]
    assert any("ERR_INTERNET_DISCONNECTED" in complaint for complaint in seen["complaints"])
    assert seen["headings"] == ["seen"]
    assert [plot["cut"] for plot in seen["plots"]] == [["cut off\n"]]
    assert seen["overflow"]["390"][0] == "the page itself"
    assert seen["opened"] is None
