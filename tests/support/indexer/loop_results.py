"""Results of steps for tests of whoever watches the loop: a block's hash repeats its height."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.types import Advanced, Idle, Provenance, RolledBack

FIRST_TIMESTAMP = 1_700_000_000


def reference(number: int) -> BlockReference:
    return BlockReference(number, bytes([number % 256]) * 32)


def header(number: int) -> BlockHeader:
    block = reference(number)
    return BlockHeader(number, block.hash, b"\x00" * 32, FIRST_TIMESTAMP + number)


def advanced(
    number: int,
    head: int | None = None,
    envelopes: int = 1,
    quarantined: int = 0,
    from_block: int | None = None,
    final_block: int = -1,
    established: Provenance = Provenance.RECEIPTS,
) -> Advanced:
    return Advanced(
        from_block=number if from_block is None else from_block,
        cursor=reference(number),
        head=header(number if head is None else head),
        final_block=final_block,
        envelopes=envelopes,
        quarantined=quarantined,
        sequence_ids={0: number},
        established=established,
    )


def idle(number: int, head: int | None = None) -> Idle:
    return Idle(reference(number), header(number if head is None else head), -1)


def rolled_back(number: int, depth: int = 3, head: int | None = None) -> RolledBack:
    top = header(number + depth if head is None else head)
    return RolledBack(1, depth, reference(number), top, -1, 22)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, seconds: float = 100.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


@contextmanager
def logging_restored() -> Iterator[None]:
    """Undo what `configure_logging` does to the process."""
    loggers = [logging.getLogger(name) for name in ("chainkit_indexer", "chainkit")]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    try:
        yield
    finally:
        for logger, handlers, level in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
