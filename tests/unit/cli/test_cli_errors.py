"""The root prints an error of a command in words, and exits with its code."""

from __future__ import annotations

import contextlib
import io

import click
import pytest

from chainkit.cli.main import main
from chainkit.errors import ChainkitError, ConfigurationError

HASH = "0x" + "5f" * 32
FILE = "/media/council/proposals-of-november/" + "disable-300-and-" * 6 + ".json"


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


def printed_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO] = Terminal
) -> str:
    """The root's output on standard error where a command raises."""

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr("chainkit.cli.main.chainkit", fail)
    printed = stream()
    with pytest.raises(SystemExit), contextlib.redirect_stderr(printed):
        main()
    return printed.getvalue()


@pytest.mark.parametrize("error", [ChainkitError, ConfigurationError])
def test_run__expected_error__is_one_sentence_on_stderr_and_exits_2(
    error: type[ChainkitError],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise error("chain id", 31337, 1, "endpoint")

    monkeypatch.setattr("chainkit.cli.main.chainkit", fail)

    with pytest.raises(SystemExit) as exit_:
        main()

    assert exit_.value.code == 2
    assert capsys.readouterr() == ("", "error: chain id: expected 31337, got 1 (endpoint)\n")


def test_run__error_longer_than_a_line__is_folded_between_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons = [f"call {number} of SafeTx {HASH}" for number in range(6)]
    error = ChainkitError("proposal", " or ".join(reasons), "none", FILE)

    first, *rest = printed_error(error, monkeypatch).splitlines()

    assert first == "error: proposal: expected call 0 of SafeTx"
    assert all(line.startswith("  ") for line in rest)
    assert [line for line in (first, *rest) if len(line) > 100] == [f"  ({FILE})"]
    assert " ".join(line.strip() for line in (first, *rest)) == f"error: {error}"


@pytest.mark.parametrize(("length", "lines"), [(100, 1), (101, 2)])
def test_run__error_of_a_lines_length__is_not_folded(
    length: int, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shortest = "error: a: expected b, got "
    error = ChainkitError("a", "b", "c" * (length - len(shortest)))

    assert len(printed_error(error, monkeypatch).splitlines()) == lines


def test_run__long_error_in_a_log__is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ChainkitError("proposal", "word " * 40, "none")

    printed = printed_error(error, monkeypatch, io.StringIO)

    assert printed == f"error: {error}\n"


def test_run__error_with_line_breaks_of_a_stranger__is_folded_by_us_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = ChainkitError("endpoint", "an answer", "\nerror: done\x1b[2J " + "word " * 30)

    printed = printed_error(error, monkeypatch)

    assert "\\nerror: done\\x1b[2J" in printed
    assert printed.count("error: ") == 2
    assert [line for line in printed.splitlines() if line.startswith("error: ")] == [
        printed.splitlines()[0]
    ]


def test_run__error_with_a_run_of_blanks__shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ChainkitError("reason", "single blanks", "a   SafeTx hash")

    printed = printed_error(error, monkeypatch)

    assert printed == "error: reason: expected single blanks, got a \\x20\\x20SafeTx hash\n"


def test_run__wrong_option_told_at_length__is_folded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = " ".join(f"--option-{number}" for number in range(20))

    printed = printed_error(click.UsageError(sentence), monkeypatch)

    assert " ".join(printed.split()) == f"Error: {sentence}"
    assert max(map(len, printed.splitlines())) <= 100


def test_run__unexpected_error__keeps_its_traceback_and_exits_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("chainkit.cli.main.chainkit", fail)

    with pytest.raises(SystemExit) as exit_:
        main()

    assert exit_.value.code == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_run__interrupted__exits_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(**_: object) -> None:
        raise click.Abort

    monkeypatch.setattr("chainkit.cli.main.chainkit", interrupt)

    with pytest.raises(SystemExit) as exit_:
        main()

    assert exit_.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize("answer", [KeyboardInterrupt, EOFError])
def test_run__interrupted_at_a_question__tells_so_on_a_line_of_its_own(
    answer: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(_: str) -> str:
        raise answer

    def ask(**_: object) -> None:
        click.prompt("the first digits", err=True)

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupt)
    monkeypatch.setattr("chainkit.cli.main.chainkit", ask)

    with pytest.raises(SystemExit) as exit_:
        main()

    assert exit_.value.code == 130
    assert capsys.readouterr().err == "the first digits:\nerror: interrupted\n"


def test_run__interrupted_at_work__has_no_empty_line_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def work() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["chainkit"])
    monkeypatch.setattr("chainkit.cli.main.chainkit", work)

    with pytest.raises(SystemExit):
        main()

    # click's own line break is what ends the line of a terminal's ^C.
    assert capsys.readouterr().err == "\nerror: interrupted\n"
