"""The simulators find bugs that are planted in the rules of nodes and clients.

Those of clients are tried in `make soak`: their stories take longer.
"""

from __future__ import annotations

import pytest

from support.seeds import IS_SOAK
from tools.breaking import Copy
from tools.planted_bugs.trial import HUNTS, Bug, bugs, first_failure, verdict

SIMULATORS = tuple(HUNTS) if IS_SOAK else ("network",)
BUGS = [each for each in bugs() if each.simulator in SIMULATORS]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug__is_found(copy: Copy, bug: Bug) -> None:
    assert verdict(copy, bug).found is not None


def test_no_bug__nothing_is_found(copy: Copy) -> None:
    assert first_failure(copy, seeds=2) is None
