"""Figures of a run, as a report holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_DIGITS: Final = 4

Figures = Mapping[str, Any]
"""By name."""


def rounded(value: float) -> float:
    """Keep the digits that another run would nearly repeat."""
    return float(f"{value:.{_DIGITS}g}")
