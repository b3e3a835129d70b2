"""The page about threats: each test that it names exists, and each threat names one."""

from __future__ import annotations

import re

from support.project import DOCS

PAGE = DOCS / "threats.md"
LINK = re.compile(r"\[test\]\(([^)#]+)#(test_\w+)\)")
ROWS = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]


def test_page__each_test__is_in_its_file() -> None:
    named = LINK.findall(PAGE.read_text())

    missing = [
        (path, name)
        for path, name in named
        if f"def {name}(" not in (DOCS / path).resolve().read_text()
    ]
    assert len(named) > 20
    assert missing == []


def test_page__each_threat__is_played_by_a_test_or_is_stopped_by_nothing() -> None:
    for row in ROWS:
        _, could, stops, remains = row
        assert LINK.search(stops) or stops.startswith("nothing: "), could
        assert remains.strip(" |"), could


def test_page__is_one_page() -> None:
    assert len(ROWS) < 40
