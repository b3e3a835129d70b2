"""The report as a whole: what it says, that it loads nothing, and that strangers' text is text."""

import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from chainkit_jobs.cost.variants import VARIANTS
from chainkit_jobs.report.costs import NOT_ASKED_FOR, VARIANT_WORDS
from chainkit_jobs.report.page import MOST_GAPS, SECTIONS, render_report
from support.audit.report_input import (
    EVIL,
    HIDDEN,
    TRUST,
    cost_row,
    costs,
    coverage_row,
    finding,
    refused,
    report_input,
    summary,
)

VOID = {"meta", "br", "path", "use", "rect"}


class Page(HTMLParser):
    """Collects what a page would load or run, its headings, ids and links, and its open tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.loaded += re.findall(r"@import|url\((?!#)[^)]*\)", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "link", "iframe", "img", "object", "image"):
            self.loaded.append(tag)
        for name, value in attrs:
            is_local = (value or "").startswith("#")
            if name in ("href", "src", "xlink:href", "srcset") and not is_local:
                self.loaded.append(f"{name}={value}")
            if name == "href" and is_local:
                self.links.append((value or "")[1:])
            if name.startswith("on"):
                self.loaded.append(name)
            if name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def whole() -> str:
    """A page with everything in it."""
    return render_report(report_input(summary=summary(trust=TRUST), costs=costs()))


def text_of(page: str) -> str:
    """The page's text, with spaces as a browser shows them."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_render__whole_page__has_each_section_once_and_refers_to_nothing_outside(
    whole: str,
) -> None:
    page = Page(whole)

    assert page.headings == list(SECTIONS.values())
    assert page.loaded == []
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.links) <= set(page.ids)


def test_page__script_and_font__are_seen() -> None:
    page = Page("<script src='//a'></script><p style='background:url(http://b)' onclick='x'>")

    assert page.loaded == ["script", "src=//a", "onclick", "url(http://b)"]


def test_render__policy__forbids_a_browser_to_load_or_run_anything(
    whole: str,
) -> None:
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in whole


def test_render__hostile_text__is_text_everywhere(whole: str) -> None:
    assert EVIL not in whole and "alert('&')" not in whole
    assert not set(HIDDEN) & set(whole)
    assert "\\u202e\\u0007" in whole
    # Address, contract and its name, sentences, detail and headline, contract of the costs, plot.
    assert whole.count("&lt;script&gt;") >= 8


def test_render__blocks_that_a_node_did_not_prove__says_how_many() -> None:
    text = render_report(report_input())

    assert "2 by one endpoint, not proved" in text
    assert "by receipts" not in text


def test_render__same_input__same_bytes(whole: str) -> None:
    assert whole == render_report(report_input(summary=summary(trust=TRUST), costs=costs()))


def test_render__chain_export_that_was_proved__says_from_what_and_what_was_not(
    whole: str,
) -> None:
    page = text_of(whole)

    assert "The chain export was proved from this one hash: 20 blocks, 9 transactions" in page
    assert str(TRUST["block_hash"]) in page
    assert "12 345 logs." in page
    assert "Not proved in the chain export: &lt;script&gt;" in page
    assert "no trusted block hash" not in page


def test_render__all_of_the_export_was_proved__says_so() -> None:
    page = text_of(render_report(report_input(summary=summary(trust=TRUST | {"not_proved": []}))))

    assert "Nothing in the chain export was left unproved." in page


def test_render__chain_export_that_was_not_proved__says_so() -> None:
    page = text_of(render_report(report_input()))

    assert "None. The chain export was believed as it is." in page
    assert "no trusted block hash" in page


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("clean", "Clean. Every node compared serves what the chain demands"),
        ("no difference found", "No difference found. Not proved: the chain export. Other"),
        ("findings", "1 finding. Not proved: the chain export. Each is listed below"),
        ("could not decide", "Not everything could be decided. Not proved: the chain export. See"),
        ("could not compare", "Not everything could be compared. Not proved: the chain export."),
    ],
)
def test_render__outcome__is_the_first_thing_said(outcome: str, words: str) -> None:
    assert words in text_of(render_report(report_input(summary=summary(outcome=outcome))))


@pytest.mark.parametrize("outcome", ["could not decide", "could not compare"])
def test_render__findings_beside_what_stays_open__are_counted(
    outcome: str,
) -> None:
    page = text_of(render_report(report_input(summary=summary(outcome=outcome))))
    without = summary(outcome=outcome, findings_total=0)

    assert "Listed below: 1 finding." in page
    assert "Listed below" not in text_of(render_report(report_input(summary=without, findings=[])))


def test_render__export_of_nobody_or_without_a_manifest__has_a_row() -> None:
    rows = [refused(folder=EVIL + HIDDEN), refused(node_id=300, folder="exports/d")]

    page = render_report(report_input(summary=summary(refused=rows)))

    text = text_of(page)
    assert "no node known &lt;script&gt;" in text and "\\u202e\\u0007 set aside not comp" in text
    assert "300 exports/d set aside not compared, see below" in text
    assert "1 of 4 exports of nodes compared" in text
    assert EVIL not in page and not set(HIDDEN) & set(page)


def test_render__tables_compared__says_so() -> None:
    compared = {"envelopes": [100, 200], "quarantine": [100], "journal": [], "registry_updates": []}
    asked = summary(with_tables=True, tables_compared=compared)
    with_tables = text_of(render_report(report_input(summary=asked)))
    without = text_of(render_report(report_input(summary=summary(with_tables=False))))

    words = "Also the tables beside the envelopes, in the exports that contain them"
    assert words in with_tables
    assert "other columns of 2 nodes, quarantine of 1 node, journal of 0 nodes, the" in with_tables
    assert words not in without


def test_render__severity__is_that_of_this_audit() -> None:
    lowered = render_report(report_input(findings=[finding() | {"severity": "major"}]))

    assert '<span class="severity major">' in lowered
    assert '<span class="severity critical">' not in lowered


def test_render__signatures_left_out__says_that_none_was_checked() -> None:
    unsigned = text_of(render_report(report_input(summary=summary(with_signatures=False))))
    signed = text_of(render_report(report_input(summary=summary(with_signatures=True))))

    assert "No signature was checked" in unsigned and "recover" not in unsigned
    assert "recovers to the key that the registry holds" in signed
    assert "No signature was checked" not in signed


def test_render__nothing_at_all__still_is_a_page() -> None:
    empty = summary(outcome="clean", nodes=[], findings_total=0, not_compared=[])

    page = text_of(render_report(report_input(summary=empty, findings=[], coverage=[], costs=None)))

    assert "Nothing to show: no node's export was given." in page
    assert "Within these exports, nothing was left out." in page
    assert NOT_ASKED_FOR in page


def test_render__coverage__spells_out_what_did_not_match_and_says_where_the_rest_is() -> None:
    rows = [coverage_row(n, matched=0, outside=2) for n in range(1, MOST_GAPS + 4)]

    page = render_report(report_input(coverage=[coverage_row(999), *rows]))

    assert f"where not all matched: {MOST_GAPS} rows, 3 more in coverage.jsonl" in text_of(page)
    assert "node 100: 1 matched, 0 missing, 0 wrong, 406 not compared" in page


def test_render__costs__are_told_exactly_and_with_their_units(whole: str) -> None:
    page = text_of(whole)

    assert "100.000000000000000001 ether" in page
    assert "mean price of gas 0.0000000015 gwei" in page
    assert "25 %" in page
    assert "The 1 with most gas; 30 more stand in payers.jsonl" in page
    assert "256 to 511" in page
    assert "busiest hour 1970-01-01 02:00 UTC: 5 messages, 7 gas" in page


def test_render__costs_that_cannot_be_told__says_why() -> None:
    page = text_of(render_report(report_input(costs="export x: expected receipts, got none")))

    assert "because the export does not hold it all: export x: expected receipts" in page


def test_render__no_transaction_of_the_contracts__draws_nothing() -> None:
    idle = replace(costs(), total=cost_row("total", transactions=0, l1_share=None))

    page = render_report(report_input(costs=idle))

    assert "No transaction of the contracts in these blocks." in page
    # The coverage alone, for a wide screen and for a narrow one.
    assert (page.count("<figure"), page.count("<svg")) == (1, 2)


def test_render__transactions_without_a_message__still_draws_what_there_is() -> None:
    silent = replace(
        costs(),
        total=cost_row("total", messages=0, gas_per_byte=None, price=None, l1_share=None),
        sizes=(),
        samples=(),
        variants=(),
        busiest={"block": None, "hour": None},
    )

    page = render_report(report_input(costs=silent))

    text = text_of(page)
    assert "transactions of the contracts 1 000" in text
    assert "By payer" in text and "busiest" not in text
    assert (page.count("<figure"), page.count("<svg")) == (4, 5)


def test_variant_words__each_variant__has_some() -> None:
    assert set(VARIANT_WORDS) == set(VARIANTS)


def test_render__finding__shows_all_of_its_evidence() -> None:
    page = render_report(report_input(findings=[finding(sequence_id=Decimal(2**64 - 1))]))

    text = text_of(page)
    assert "sequence 18446744073709551615" in text
    assert "0, 18446744073709551615" in text
    for value in (b"\x01" * 32, b"\x02" * 32, b"\x03" * 32):
        assert "0x" + value.hex() in text
    assert "450 bytes" in text
    assert "ee" * 450 in text
