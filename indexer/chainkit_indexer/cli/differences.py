"""Differences between the chain and the database, printed as they are found, or kept for JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

import click

from chainkit_indexer.cli.lines import fit, shortened
from chainkit_indexer.verification.page_comparison import Difference

_MOST_IN_TEXT: Final = 20
_MOST_IN_JSON: Final = 1000


class Differences:
    """Prints the first differences as they are found, or keeps more of them for JSON."""

    def __init__(self, advance: Callable[[int], None], as_json: bool) -> None:
        """Count the compared blocks by ``advance``."""
        self.kept: list[Difference] = []
        self.compared = advance
        self._as_json = as_json

    def differs(self, difference: Difference) -> None:
        """Take note of a difference."""
        if len(self.kept) == (_MOST_IN_JSON if self._as_json else _MOST_IN_TEXT):
            return
        self.kept.append(difference)
        if not self._as_json:
            line = str(difference).replace("bytes with keccak256 0x", "bytes 0x")
            click.echo(fit(shortened(line)))

    def say_how_many_more(self, count: int) -> None:
        """Print how many differences were not printed."""
        if (more := count - _MOST_IN_TEXT) > 0:
            listed = "all" if count <= _MOST_IN_JSON else f"the first {_MOST_IN_JSON}"
            click.echo(f"… and {more} more (--json lists {listed})")

    def as_json(self, count: int) -> dict[str, Any]:
        """Return the kept differences as scripts read them, and the number of all."""
        return {"difference_count": count, "differences": [asdict(each) for each in self.kept]}
