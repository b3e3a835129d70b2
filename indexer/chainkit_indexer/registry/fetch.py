"""Reads the node registry's logs and checks them; ``follower`` explains why the checks suffice."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.chain import Endpoint, LogFilter
from chainkit.chain.log_ranges import RangeWidth
from chainkit.contracts.followed import FollowedRegistry
from chainkit.errors import EndpointUnavailable, InconsistentAnswer, MalformedLog, RangeRefused
from chainkit.ethereum.bloom import bloom_mask, may_hold
from chainkit.protocol.events import NODE_UPDATED_TOPIC, decode_node_updated
from chainkit.types import BlockHeader, Log
from chainkit_indexer.follow.fetch import check_headers, linked_headers
from chainkit_indexer.follow.receipt_proof import ReceiptProof
from chainkit_indexer.registry.history import RegistryUpdate

_PATIENCE_SECONDS: Final = 3.0
"""An endpoint that takes this long to refuse ranges ends the step: the payloads wait for the
step."""

_HIGHEST_NODE_ID: Final = 2**32 - 1
_HIGHEST_INDEX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RegistryRange:
    """The rows that were read after ``start``."""

    start: BlockHeader
    blocks: tuple[BlockHeader, ...]
    """Rising; the last header is the range's end; all headers are there only near the head."""
    updates: tuple[RegistryUpdate, ...]
    """In the order of the chain."""

    @property
    def last(self) -> BlockHeader:
        """The range's end."""
        return self.blocks[-1]

    def followed_by(self, later: RegistryRange) -> RegistryRange:
        """Return this range and the next one as one."""
        return RegistryRange(self.start, self.blocks + later.blocks, self.updates + later.updates)


class RegistryReader:
    """Reads one registry's updates, in ranges that fit what the endpoint gives at once."""

    def __init__(
        self,
        registry: FollowedRegistry,
        window_blocks: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read every header in the ``window_blocks`` below the head."""
        address = registry.address
        self._clock = clock
        self._window_blocks = window_blocks
        self._wanted = LogFilter((address,), (NODE_UPDATED_TOPIC,))
        self._mask = bloom_mask((address, NODE_UPDATED_TOPIC))
        self._receipts = ReceiptProof(self._wanted, (self._mask,), registry.chain_id, clock)
        self._width = RangeWidth()

    def read(
        self, endpoint: Endpoint, start: BlockHeader, head: BlockHeader
    ) -> RegistryRange | None:
        """Return the blocks after ``start``, None where ``start`` is no longer on the chain.

        Raises InconsistentAnswer where headers do not link, or logs do not lie in them, and
        EndpointUnavailable where the endpoint does not even give the logs of one block, or takes
        long to refuse those of several: then the next call asks for fewer blocks.
        """
        if head.number - start.number <= self._window_blocks:
            headers = linked_headers(endpoint, start.number, head.number)
            logs = self._logs_of(endpoint, headers[1:])
        else:
            last = head.number - self._window_blocks
            logs, last = self._logs_of_range(endpoint, start.number + 1, last)
            numbers = {start.number, last, *(log.block_number for log in logs)}
            heights = sorted(numbers)
            headers = check_headers(endpoint, heights, endpoint.headers(heights))
        if headers[0].hash != start.hash:
            return None
        # Without receipts, the registry's own listing must suffice: it has the nodes, not the logs.
        self._receipts.prove(endpoint, headers[1:], logs)
        of_number = {header.number: header for header in headers}
        updates = tuple(_update(endpoint, log, of_number[log.block_number]) for log in logs)
        return RegistryRange(start, tuple(headers[1:]), updates)

    def _logs_of(self, endpoint: Endpoint, headers: Sequence[BlockHeader]) -> list[Log]:
        """Ask each block for its logs by hash, and once more where its filter affirms a log."""
        logs = endpoint.logs_of(headers, self._wanted)
        seen = {log.block_number for log in logs}
        doubtful = [
            header
            for header in headers
            if header.number not in seen
            and header.logs_bloom is not None
            and may_hold(header.logs_bloom, self._mask)
        ]
        for log in endpoint.logs_of(doubtful, self._wanted):
            subject = f"logs of block {log.block_number} at {endpoint.name}"
            raise InconsistentAnswer(subject, "the same logs twice", f"one more at {log.place}")
        return logs

    def _logs_of_range(self, endpoint: Endpoint, first: int, last: int) -> tuple[list[Log], int]:
        """Return the logs from a height on, and the last height of the endpoint's answer."""
        patience_ends = self._clock() + _PATIENCE_SECONDS
        while True:
            end = min(last, first + self._width.blocks - 1)
            try:
                logs = endpoint.logs(first, end, self._wanted.addresses, self._wanted.topics)
            except RangeRefused as error:
                asked = end - first + 1
                self._width.refused(asked, error.suggested_blocks)
                if asked == 1 or self._clock() > patience_ends:
                    expected = "an answer over fewer blocks"
                    raise EndpointUnavailable(error.subject, expected, error.got) from error
                continue
            self._width.answered(end - first + 1)
            return logs, end


def _update(endpoint: Endpoint, log: Log, header: BlockHeader) -> RegistryUpdate:
    subject = f"log at {endpoint.name}"
    if log.block_hash != header.hash:
        expected, got = f"block hash 0x{header.hash.hex()}", f"0x{log.block_hash.hex()}"
        raise InconsistentAnswer(subject, expected, got, log.place)
    if not 0 <= log.log_index <= _HIGHEST_INDEX:
        raise InconsistentAnswer(subject, "an index of 31 bits", log.log_index, log.place)
    try:
        node = decode_node_updated(log)
    except MalformedLog as error:
        raise InconsistentAnswer(subject, error.expected, error.got, error.place) from error
    if node.node_id > _HIGHEST_NODE_ID:
        raise InconsistentAnswer(subject, "a node id of 32 bits", node.node_id, log.place)
    return RegistryUpdate(
        node, header.reference, header.timestamp, log.log_index, log.transaction_hash
    )
