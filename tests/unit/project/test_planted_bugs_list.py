"""The list of planted bugs, and the page about them."""

import pytest
import yaml

from support.client.stories.nodes import LIES
from support.network.simulation.lies import ChainLie, Lie
from support.project import ROOT
from tools.conformance.demands import read_demands
from tools.planted_bugs.page import page
from tools.planted_bugs.trial import BUGS, Bug, Verdict, bugs


@pytest.mark.parametrize("bug", bugs(), ids=lambda bug: bug.name)
def test_bug__its_text__stands_once_in_its_file(bug: Bug) -> None:
    source = (ROOT / bug.file).read_text()
    assert bug.applied_to(source) != source
    of_nodes = {str(each) for each in (*Lie, *ChainLie)}
    lies = {"network": of_nodes, "client": set(LIES), "group": set[str]()}
    assert set(bug.lies) <= lies[bug.simulator]


def test_bugs__those_that_break_a_demand__name_it_and_repeat_nothing() -> None:
    breaks = {
        (each.mutation.file, each.mutation.text, each.mutation.replacement)
        for chapter in read_demands()
        for each in chapter.demands
        if each.mutation is not None
    }
    rows = yaml.safe_load(BUGS.read_text())

    assert any("demand" in row for row in rows)
    written = {(row["file"], row["text"], row["replacement"]) for row in rows if "file" in row}
    assert not written & breaks


def test_page__lists_each_bug_as_found() -> None:
    written = (ROOT / "docs" / "simulation.md").read_text()
    rows = [line for line in written.splitlines() if line.startswith("| ")]

    for bug in bugs():
        [row] = [line for line in rows if line.startswith(f"| {bug.name} |")]
        assert "not found" not in row


def test_page__a_bug_that_was_not_found__says_so() -> None:
    first, second = bugs()[:2]

    written = page([Verdict(first, None), Verdict(second, "3 AssertionError: a | b")])

    assert "**1 of 2 bugs found.**" in written
    assert "| not found |" in written
    assert "3 AssertionError: a \\| b" in written
