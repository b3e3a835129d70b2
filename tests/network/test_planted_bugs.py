"""The simulated network finds bugs that are planted in the node's rules."""

from __future__ import annotations

import os

import pytest

from tools.planted_bugs.trial import Bug, attempt, bugs, verdict

# All of them in docs/simulation.md, by `make planted-bugs`.
TRIED = bugs() if "CHAINKIT_SOAK" in os.environ else bugs()[::6]


@pytest.mark.parametrize("bug", TRIED, ids=lambda bug: bug.name)
def test_planted_bug__is_found(bug: Bug) -> None:
    assert verdict(bug).found is not None


def test_no_bug__nothing_is_found() -> None:
    assert attempt(None, seeds=2) is None
