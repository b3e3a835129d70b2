"""The words for a person who waits for somebody that does not answer."""

from __future__ import annotations

import threading

import pytest

from chainkit.terminal.waiting import told_while_waiting


def test_told_while_waiting__it_takes_long__says_on_standard_error_for_what(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = threading.Event()

    def words() -> str:
        asked.set()
        return "waiting for node 300"

    with told_while_waiting(words, first_seconds=0.0):
        assert asked.wait(60)

    assert capsys.readouterr() == ("", "waiting for node 300\n")


def test_told_while_waiting__it_is_done_at_once__says_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with told_while_waiting(lambda: "waiting", first_seconds=60.0):
        pass

    assert capsys.readouterr() == ("", "")


def test_told_while_waiting__an_error_within__ends_it_too() -> None:
    before = threading.enumerate()

    with pytest.raises(KeyError), told_while_waiting(lambda: "waiting", first_seconds=60.0):
        assert threading.enumerate() != before
        raise KeyError

    assert threading.enumerate() == before
