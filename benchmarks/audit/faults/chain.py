"""Faults in the chain's export: logs that an endpoint left out, repeated or put elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chainkit_jobs.findings import Code

Log = dict[str, Any]
"""A row of chainkit.exports.tables.LOGS."""

_RUN: Final = 3


@dataclass(frozen=True, slots=True)
class ChainKind:
    """A change to the logs of some payloads in succession, and the finding that it must give."""

    name: str
    changes: str
    """In words."""
    write: Callable[[list[Log]], list[Log]]
    code: Code
    payload: int = 0
    """Which of the payloads the finding names."""
    width: int = 1


def _nothing(logs: list[Log]) -> list[Log]:
    return []


def _twice(logs: list[Log]) -> list[Log]:
    return [*logs, *logs]


def _places_swapped(logs: list[Log]) -> list[Log]:
    first, second = logs
    return [
        first | {"log_index": second["log_index"]},
        second | {"log_index": first["log_index"]},
    ]


CHAIN_KINDS: Final[Mapping[str, ChainKind]] = {
    kind.name: kind
    for kind in (
        ChainKind("log_left_out", "a log left out", _nothing, Code.CHAIN_SEQUENCE_GAP),
        ChainKind(
            "logs_left_out",
            "three logs in succession left out",
            _nothing,
            Code.CHAIN_SEQUENCE_GAP,
            width=_RUN,
        ),
        ChainKind("log_repeated", "a log twice", _twice, Code.CHAIN_SEQUENCE_REPEATED),
        ChainKind(
            "logs_swapped",
            "the places of two logs in a block swapped",
            _places_swapped,
            Code.CHAIN_SEQUENCE_ORDER,
            payload=1,
            width=2,
        ),
    )
}
