from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from chainkit_node.originating.twin import SHOWN_SECONDS, TwinCheck, TwinFound

OWN_ID = 200
NS = 10**9


@dataclass
class Signed:
    sequence_id: int
    originator_ns: int
    originator_id: int = OWN_ID


class Clocks:
    """A process that begins to originate ten seconds after its start."""

    def __init__(self) -> None:
        self.ns, self.steady = 1_000 * NS, 50.0
        self.twin = TwinCheck(lambda: OWN_ID, lambda: self.ns, lambda: self.steady)
        self.ns += 10 * NS

    def begun(self) -> TwinCheck:
        self.twin.begins()
        self.twin.signed([4, 5])
        self.twin.signed([6])
        return self.twin


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def is_stopped(twin: TwinCheck) -> bool:
    try:
        twin.check()
    except TwinFound:
        return True
    return False


@pytest.mark.parametrize(
    ("take", "is_found"),
    [
        (lambda twin: twin.took([Signed(7, 1_011 * NS)], []), True),
        (lambda twin: twin.took([], [Signed(5, 1_011 * NS)]), True),
        # Signed before this process began: a past process of this node.
        (lambda twin: twin.took([Signed(7, 1_009 * NS)], [Signed(5, 1_009 * NS)]), False),
        # Signed by this process: its database has fallen back.
        (lambda twin: twin.took([Signed(5, 1_011 * NS)], []), False),
        (lambda twin: twin.took([Signed(7, 1_011 * NS, 300)], []), False),
    ],
)
def test_took__envelope_of_the_own_key__is_a_twins_where_this_process_cannot_have_signed_it(
    clocks: Clocks, take: Callable[[TwinCheck], None], is_found: bool
) -> None:
    twin = clocks.begun()

    take(twin)

    assert is_stopped(twin) is is_found
    assert twin.readiness().is_ok is not is_found


def test_took__before_this_process_originates__is_taken_back(clocks: Clocks) -> None:
    clocks.twin.took([Signed(7, 1_011 * NS)], [])

    assert not is_stopped(clocks.twin)


def test_question__answered_by_this_process__is_no_twin(clocks: Clocks) -> None:
    topic = clocks.twin.question()
    clocks.twin.signs_head(topic)
    clocks.twin.was_answered(topic)

    assert not is_stopped(clocks.twin)


def test_question__answered_by_another_process__stops_this_one_for_good_and_is_logged_once(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "chainkit"):
        for _ in range(2):
            clocks.twin.signs_head(bytes(33))
            clocks.twin.was_answered(clocks.twin.question())
    clocks.steady += 10 * SHOWN_SECONDS

    assert is_stopped(clocks.twin)
    assert "stop one of the two" in str(clocks.twin.wrong())
    assert [record.event.name for record in caplog.records] == ["twin_found"]  # type: ignore[attr-defined]


def test_token__of_another_process__is_shown_while_it_goes_on_and_stops_nothing(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "chainkit"):
        clocks.twin.was_shown("theirs", 1_020)
        clocks.twin.was_shown("theirs", 1_020)
    shown = clocks.twin.wrong()
    clocks.steady += SHOWN_SECONDS + 1

    assert "asks here" in str(shown)
    assert clocks.twin.wrong() is None
    assert not is_stopped(clocks.twin)
    assert [record.event.name for record in caplog.records] == ["twin_asks"]  # type: ignore[attr-defined]


def test_token__of_this_process_or_from_before_its_start__shows_nothing(clocks: Clocks) -> None:
    clocks.twin.wrote("own")
    clocks.twin.was_shown("own", 1_020)
    clocks.twin.was_shown("of the process before", 999)

    assert clocks.twin.wrong() is None
