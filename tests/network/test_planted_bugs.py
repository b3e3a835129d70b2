"""The simulated network finds bugs that are planted in the node's rules."""

from __future__ import annotations

import pytest

from tools.planted_bugs.trial import Bug, attempt, bugs, verdict


@pytest.mark.parametrize("bug", bugs(), ids=lambda bug: bug.name)
def test_planted_bug__is_found(bug: Bug) -> None:
    assert verdict(bug).found is not None


def test_no_bug__nothing_is_found() -> None:
    assert attempt(None, seeds=2) is None
