"""How much a request asks for in logs: what may be asked for in smaller pieces instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

_SEVERAL: Final = 2
"""Blocks of a query that names no number of blocks."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The range that an ``eth_getLogs`` asked for, as far as an error needs it."""

    subject: str
    blocks: int

    @classmethod
    def among(cls, calls: Sequence[tuple[str, Sequence[Any]]]) -> Self | None:
        """Return the range of logs that some calls ask for, or None if they ask for no logs."""
        queries = [cls._of(params[0]) for method, params in calls if method == "eth_getLogs"]
        if len(queries) < 2:
            return queries[0] if queries else None
        blocks = sum(query.blocks for query in queries)
        return cls(f"logs of {blocks} blocks", blocks)

    @classmethod
    def _of(cls, query: Mapping[str, Any]) -> Self:
        if "blockHash" in query:
            return cls(f"logs of block {query['blockHash']}", 1)
        try:
            first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        except (KeyError, ValueError):
            # By a tag, or up to the head: as many as there are.
            return cls("logs", _SEVERAL)
        return cls(f"logs of blocks {first} to {last}", last - first + 1)
