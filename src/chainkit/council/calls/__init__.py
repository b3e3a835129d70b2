"""A council's calls of the contracts, by name, and the effect of each."""

from chainkit.council.calls.call import FUNCTIONS, OWNER_FUNCTIONS, SAFE, Call
from chainkit.council.calls.effect import (
    Change,
    Effect,
    Facts,
    difference,
    expected_change,
    read_change,
    unmet,
)

__all__ = [
    "FUNCTIONS",
    "OWNER_FUNCTIONS",
    "SAFE",
    "Call",
    "Change",
    "Effect",
    "Facts",
    "difference",
    "expected_change",
    "read_change",
    "unmet",
]
