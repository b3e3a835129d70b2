"""The caller whose request is being answered, for parts that share work between callers."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class AskedBy:
    """A caller, within the task that answers its request."""

    name: str
    """Different for each caller, such as ``address 192.0.2.1`` or ``node 200``."""
    charge: Callable[[int], None]
    """Takes the number of a request's parts, such as topics: many count as more requests."""


ASKED_BY: Final[ContextVar[AskedBy | None]] = ContextVar("asked_by", default=None)
"""None where this node asks itself."""
