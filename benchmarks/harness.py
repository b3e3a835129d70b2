"""The harness of all benchmarks: their commands, and where their figures are written and shown."""

from __future__ import annotations

import json
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from benchmarks.figures import Figures
from benchmarks.markdown import table
from benchmarks.target import Target
from chainkit.errors import ChainkitError
from chainkit.terminal.options import Option, several
from localnet.deployment import PROJECT
from localnet.process import interrupt

FOLDER: Final = PROJECT / "build" / "bench"
_DOCUMENTS: Final = PROJECT / "docs"
_HELP: Final = """

Exits 0 when done, 2 if it could not measure.

\b
Example:
  python -m benchmarks.{} --quick
"""


class Table(NamedTuple):
    """A table whose columns but the first are figures."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> Iterator[str]:
        """Yield its lines for a terminal."""
        lines = [self.head, *self.rows]
        first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
        for title, *cells in lines:
            figures = (cell.rjust(width) for cell, width in zip(cells, others, strict=True))
            yield "  ".join((title.ljust(first), *figures)).rstrip()


def judged(targets: Iterable[Target]) -> Table:
    """Return the table of the targets, and whether each was reached."""
    rows = [(each.what, each.wanted, each.found, each.verdict) for each in targets]
    return Table(("target", "wanted", "found", "verdict"), rows)


def named(rows: Mapping[str, str], figures: Figures) -> Table:
    """Return the table of some figures; ``rows`` maps their names to their titles."""
    return Table(("figure", ""), [(title, f"{figures[name]:,}") for name, title in rows.items()])


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: its command and its part of docs/benchmarks.md are made from it."""

    words: str
    """Words of its command after ``python -m benchmarks.``; the first one also names its files."""
    title: str
    """Title of its part of docs/benchmarks.md."""
    quick: str
    """How little a quick run measures, for the help of ``--quick``."""
    measure: Callable[..., dict[str, Any]]
    """Takes ``quick`` and the command's own options; its docstring begins the command's help."""
    page: Callable[[Figures], Iterable[str | Table]]
    """Texts and tables of its part; a terminal shows the tables alone."""
    plot: Callable[[Figures], str] | None = None
    """Returns its picture as SVG."""

    @property
    def name(self) -> str:
        """The name of its files."""
        return self.words.split()[0]

    def section(self, figures: Figures) -> str:
        """Return its part of docs/benchmarks.md."""
        parts = (table(*part) if isinstance(part, Table) else part for part in self.page(figures))
        return "\n\n".join(part.strip() for part in (f"# {self.title}", *parts)) + "\n"

    def tables(self, figures: Figures) -> str:
        """Return its tables for a terminal."""
        tables = (part for part in self.page(figures) if isinstance(part, Table))
        return "\n\n".join("\n".join(each.lines()) for each in tables)

    def documents(self, figures: Figures) -> dict[Path, str]:
        """Return the new text of each file in docs/."""
        document = _DOCUMENTS / "benchmarks.md"
        page = with_section(document.read_text(encoding="utf-8"), self.section(figures))
        picture = _DOCUMENTS / f"benchmarks-{self.name}.svg"
        return {document: page} | ({picture: self.plot(figures)} if self.plot else {})

    def command(self, *options: Option) -> click.Command:
        """Return its command; ``options`` are those that no other benchmark has."""

        def main(
            quick: bool, write_docs: bool, output: Path, as_json: bool = False, **own: Any
        ) -> None:
            if quick and write_docs:
                raise click.UsageError("--quick measures too little for --write-docs")
            with measuring():
                figures = self.measure(quick, **own)
            text = json.dumps(figures, indent=2)
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(text + "\n", encoding="utf-8")
            for path, document in self.documents(figures).items() if write_docs else ():
                path.write_text(document, encoding="utf-8")
            click.echo(text if as_json else self.tables(figures))

        about = cleandoc(self.measure.__doc__ or "") + _HELP.format(self.words)
        return click.command(help=about)(several(*self._options(), *options)(main))

    def _options(self) -> Iterator[Option]:
        result = FOLDER / f"{self.name}.json"
        yield click.option("--quick", is_flag=True, help=f"{self.quick}: does it work at all?")
        yield click.option(
            "--write-docs", is_flag=True, help="Write the benchmark's part of docs/benchmarks.md."
        )
        yield click.option(
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            default=result,
            show_default=str(result.relative_to(PROJECT)),
            help="Where the figures go, as JSON.",
        )


def with_section(page: str, section: str) -> str:
    """Return a page with a section in place of the one that has its title, or else behind all."""
    parts = re.split(r"^(?=# )", page, flags=re.MULTILINE)
    sections = {part.partition("\n")[0]: part.strip() for part in (*parts, section) if part.strip()}
    return "\n\n".join(sections.values()) + "\n"


@contextmanager
def measuring() -> Iterator[None]:
    """End what was started where a signal comes; exit with 130 then, and with 2 on an error."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        yield
    except (ChainkitError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)


@contextmanager
def disk_folder(parent: Path = FOLDER) -> Iterator[Path]:
    """Give an empty folder, not of a memory file system: what is measured waits for a disk."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)
