"""Lines that commands print alike: a name and its value, within 100 columns."""

from __future__ import annotations

import shutil
import sys
import textwrap
from contextlib import redirect_stdout
from typing import Final, TextIO

import click

from chainkit.text.printable import printable, with_shown_blanks

LABEL_WIDTH: Final = 16
"""Columns before a fact's value."""

LINE_WIDTH: Final = 100
"""Columns that any terminal is taken to have."""

_INDENTATION: Final = "  "

_MARK: Final = "> "
"""Begins each line of a stranger's text."""

_QUOTED_WIDTH: Final = 80
"""Columns of a quote at most: a narrow terminal breaks a longer line where the mark is missing."""

_LEAST_QUOTED_WIDTH: Final = 40


def echo_fact(name: str, value: str) -> None:
    """Print a name and its value, wrapped to fit 100 columns."""
    # At least one space, also behind a long name.
    start = f"{name:<{LABEL_WIDTH - 1}} "
    lines = textwrap.wrap(
        value,
        LINE_WIDTH,
        initial_indent=start,
        subsequent_indent=" " * LABEL_WIDTH,
        break_on_hyphens=False,
    )
    for line in lines or [start]:
        click.echo(line.rstrip())


def echo_wrapped(text: str, indentation: int = 0) -> None:
    """Print a text below ``indentation`` blanks, wrapped to fit 100 columns."""
    for line in textwrap.wrap(text, LINE_WIDTH - indentation, break_on_hyphens=False):
        click.echo(" " * indentation + line)


def echo_quoted(name: str, text: str) -> None:
    """Print a stranger's text in quotes; each of its lines begins with a mark, and fits the screen.

    So no line of the text looks like a fact. Blanks that would imitate one are shown as \\x20.
    """
    columns = shutil.get_terminal_size((_QUOTED_WIDTH, 0)).columns
    width = max(min(columns, _QUOTED_WIDTH), _LEAST_QUOTED_WIDTH) - LABEL_WIDTH - len(_MARK)
    shown = with_shown_blanks(printable(text).replace('"', '\\"'))
    for line in textwrap.wrap(f'"{shown}"', width, break_on_hyphens=False):
        click.echo(f"{name:<{LABEL_WIDTH - 1}} {_MARK}{line}")
        name = ""


def folded(line: str) -> str:
    """Return a line for standard error: on a terminal, text beyond 100 columns goes on below it.

    No word is cut. In a log the line stays one line.
    """
    if len(line) <= LINE_WIDTH or not sys.stderr.isatty():
        return line
    lines = textwrap.wrap(
        line,
        LINE_WIDTH,
        subsequent_indent=_INDENTATION,
        # Hashes, addresses and paths are copied from errors.
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def echo_error(sentence: str) -> None:
    """Print an error on standard error, folded; nothing in the error can rewrite the screen."""
    # Endpoints and contracts choose parts of an error.
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in sentence
    )
    click.echo(folded(f"error: {with_shown_blanks(shown)}"), err=True)


def echo_notice(sentence: str) -> None:
    """Print a sentence on standard error beside what a command prints, folded as an error is."""
    click.echo(folded(sentence), err=True)


def shown_to_people(as_json: bool) -> redirect_stdout[TextIO]:
    """Return a context that prints on standard error where standard output is a script's."""
    return redirect_stdout(sys.stderr if as_json else sys.stdout)
