"""Numbers of things, in words."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 finding``, ``2 findings``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
