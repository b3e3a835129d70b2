"""Strangers' texts and numbers, as every form of a snapshot shows them."""

from __future__ import annotations

from typing import Final

from chainkit.misbehavior.types import Misbehavior
from chainkit_node.inspection.snapshot import MOST_TEXT

_LARGER: Final = ("kB", "MB", "GB", "TB")
_SECONDS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def shown(text: str) -> str:
    """Return a text of which strangers chose parts as one printable line of MOST_TEXT at most."""
    printed = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
    return printed if len(printed) <= MOST_TEXT else f"{printed[: MOST_TEXT - 1]}…"


def duration(seconds: float | None) -> str:
    """Return how long something took, such as ``4.2 s``, ``3 min`` or ``2 h``; ``?`` for None."""
    if seconds is None:
        return "?"
    for unit, length in _SECONDS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0.0):.1f} s"


def amount(count: int) -> str:
    """Return an amount of bytes, such as ``999 B``, ``4.2 MB`` or ``-1.0 GB``."""
    size, unit = float(count), "B"
    for larger in _LARGER:
        if abs(size) < 1_000:
            break
        size, unit = size / 1_000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def number(value: int | None) -> str:
    """Return a number, ``?`` where it is not known."""
    return "?" if value is None else str(value)


def response(misbehavior: str, seconds: float) -> str:
    """Return how long an answer took, or that none came, by the report's type."""
    if misbehavior == Misbehavior.UNRESPONSIVE_NODE.name:
        # The field of a report has 32 bits of nanoseconds: it cannot say more than 4.295 s.
        return f"no answer for {seconds:.3f} s or longer"
    return f"a response of {seconds:.3f} s"
