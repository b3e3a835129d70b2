"""Events that the contracts' code cannot have emitted in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chainkit.types import Log

LogPosition = tuple[int, int]
"""Block and log index: the order of the chain."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A log that contradicts those before it, or the contract's own rules."""

    contract: str
    """The contract's name."""
    log: Log
    expected: str
    got: str

    @property
    def place(self) -> LogPosition:
        """The log's place."""
        return place_of(self.log)

    @property
    def transaction_hash(self) -> bytes:
        """The log's transaction, 32 bytes."""
        return self.log.transaction_hash

    def __str__(self) -> str:
        """Contract, expected and got, on one line."""
        return f"{self.contract}: expected {self.expected}, got {self.got}"


Report = Callable[[Log, object, object], None]
"""Takes note of a log, and what was expected instead of what was found."""


def place_of(log: Log) -> LogPosition:
    """Return the place of a log."""
    return log.block_number, log.log_index
