"""What a council does to the contracts: calls by name, and what each of them changes."""

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
