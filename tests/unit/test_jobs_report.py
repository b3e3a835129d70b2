import json
import re
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest

from chainkit_jobs.plots import cost_plot, nodes_plot, timeline_plot
from chainkit_jobs.report_html import SHOWN_FINDINGS, render, shorten, size_range, thousands

EVIL = "<script>alert('&')</script>"

TIMELINE = [
    {"contract": "GroupMessages", "block": 1, "messages": 3},
    {"contract": "IdentityUpdates", "block": 1, "messages": 2},
    {"contract": "GroupMessages", "block": 6, "messages": 4},
]
COSTS = [
    {"contract": "GroupMessages", "payload_size": size, "gas": 50_000 + size}
    for size in (0, 100, 9000)
]
NODES = [{"node_id": 100, "expected": 7, "served": 7, "matched": 6}]


def plots() -> dict[str, str]:
    return {
        "timeline": timeline_plot(TIMELINE, 5),
        "cost": cost_plot(COSTS),
        "nodes": nodes_plot(NODES),
    }


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "outcome": "findings",
        "tool": "chainkit 0",
        "chain": {
            "chain_id": 31337,
            "genesis_hash": "0x00",
            "contracts": {"GroupMessages": "0x11"},
            "from_block": 1,
            "to_block": 20,
            "to_block_hash": "0xabcd",
            "manifest_sha256": "00",
            "payloads": 8,
            "quarantined": 1,
        },
        "nodes": [
            {
                "node_id": 100,
                "public_key": "0x04",
                "http_address": EVIL,
                "is_enabled": True,
                "manifest_sha256": "00",
                "from_block": 1,
                "to_block": 20,
                "to_block_hash": "0xabcd",
                "compared": True,
                "expected": 7,
                "served": 7,
                "matched": 6,
                "findings": {"ENVELOPE_ALTERED": 1},
            }
        ],
        "trust": None,
        "findings_total": 1,
        "not_compared": [EVIL],
    } | changes


TRUST = {
    "block_hash": "0x" + "5f" * 32,
    "proved": {"blocks": 20, "transactions": 9, "receipts": 9, "logs": 12345},
    "not_proved": [EVIL],
}


def finding(**changes: Any) -> dict[str, Any]:
    return {
        "finding_id": "f" * 64,
        "code": "ENVELOPE_ALTERED",
        "node_id": 100,
        "sequence_id": Decimal(3),
        "block_number": 12,
        "transaction_hash": b"\x01" * 32,
        "expected_digest": b"\x01" * 32,
        "served_digest": None,
        "served_transaction_hash": None,
        "detail": EVIL,
    } | changes


class References(HTMLParser):
    """Collects what a page would load or run, and whether its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "iframe", "img", "object", "image"):
            self.found.append(tag)
        for name, value in attrs:
            is_local = (value or "").startswith("#")
            if name in ("href", "src", "xlink:href", "srcset") and not is_local:
                self.found.append(f"{name}={value}")
            if name.startswith("on"):
                self.found.append(name)


def references(page: str) -> list[str]:
    parser = References()
    parser.feed(page)
    outside = re.findall(r"@import|url\((?!#)[^)]*\)", page)
    return parser.found + outside


def test_render__hostile_text__is_escaped_everywhere() -> None:
    page = render(summary(), [finding()], [], plots())

    assert EVIL not in page
    assert page.count("&lt;script&gt;") == 3


def test_render__chain_export_that_was_proved__says_from_what_and_what_was_not() -> None:
    page = render(summary(trust=TRUST), [finding()], [], plots())

    assert "proved from this one hash" in page
    assert TRUST["block_hash"] in page
    assert "12\u2009345 logs." in page
    assert EVIL not in page
    assert "Not proved in the chain export: &lt;script&gt;" in page
    assert "no trusted block hash" not in page


def test_render__chain_export_that_was_not_proved__says_so() -> None:
    page = render(summary(), [finding()], [], plots())

    assert "<b>None.</b> The chain export was believed as it is" in page
    assert "no trusted block hash" in page


def test_render__whole_page__refers_to_nothing_outside() -> None:
    assert references(render(summary(), [finding()], [], plots())) == []


def test_references__page_with_script_and_font__are_seen() -> None:
    page = "<script src='//a'></script><p style='background:url(http://b)' onclick='x'>"

    assert references(page) == ["script", "src=//a", "onclick", "url(http://b)"]


def test_render__more_findings_than_shown__says_where_the_rest_is() -> None:
    many = [finding(sequence_id=Decimal(n)) for n in range(SHOWN_FINDINGS + 3)]

    page = render(summary(), many, [], plots())

    assert "3 more stand in findings.jsonl" in page
    assert page.count('title="' + "f" * 64) == SHOWN_FINDINGS


def test_render__nothing_at_all__still_is_a_page() -> None:
    empty = summary(outcome="clean", nodes=[], findings_total=0, not_compared=[])

    page = render(empty, [], [], {"timeline": "", "cost": "", "nodes": ""})

    assert "Clean." in page
    assert page.count("Nothing to show.") == 3


def test_plots__same_numbers__same_bytes() -> None:
    assert plots() == plots()


def test_plots__numbers_of_nodes__stand_in_the_picture() -> None:
    picture = nodes_plot(NODES)

    assert ">node 100<" in picture
    assert picture.count(">7<") == 2
    assert json.dumps(picture).count("DOCTYPE") == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (b"\xab" * 32, "0xabababab…ababab"),
        ("0x1234", "0x1234"),
    ],
)
def test_shorten__value__keeps_both_ends(value: bytes | str | None, shown: str) -> None:
    assert shorten(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567, "1\u2009234\u2009567"), (Decimal("1234.500000"), "1\u2009234.500000"), (None, "–")],
)
def test_thousands__number__is_grouped_and_exact(value: object, shown: str) -> None:
    assert thousands(value) == shown


@pytest.mark.parametrize(
    ("first", "below", "shown"), [(0, 1, "0"), (1, 2, "1"), (256, 512, "256 – 511")]
)
def test_size_range__class__names_first_and_last_size(first: int, below: int, shown: str) -> None:
    assert size_range({"size_from": first, "size_below": below}) == shown
