"""The simulators find bugs that are planted in the rules of nodes and clients.

Those of clients are tried in `make soak`: their stories take longer.
"""

from __future__ import annotations

import pytest

from support.seeds import IS_SOAK
from tools.planted_bugs.trial import HUNTS, Bug, attempt, bugs, verdict

SIMULATORS = tuple(HUNTS) if IS_SOAK else ("network",)
BUGS = [each for each in bugs() if each.simulator in SIMULATORS]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug__is_found(bug: Bug) -> None:
    assert verdict(bug).found is not None


def test_no_bug__nothing_is_found() -> None:
    assert attempt(None, seeds=2) is None
