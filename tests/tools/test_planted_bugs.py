"""The simulators find bugs that are planted in the rules of nodes and clients.

Those of clients take longer: other ones are tried each day, and all in `make soak`.
"""

from __future__ import annotations

import pytest

from support.seeds import cases_of_the_day
from tools.breaking import Copy
from tools.planted_bugs.trial import Bug, bugs, first_failure, verdict

OF_NODES = [each for each in bugs() if each.simulator == "network"]
OF_CLIENTS = [each for each in bugs() if each.simulator != "network"]
BUGS = [*OF_NODES, *cases_of_the_day(OF_CLIENTS, 7)]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug__is_found(copy: Copy, bug: Bug) -> None:
    assert verdict(copy, bug).found is not None


def test_no_bug__nothing_is_found(copy: Copy) -> None:
    assert first_failure(copy, seeds=2) is None
