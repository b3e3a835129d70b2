"""Reads from the chain and doubts it: what leaves this module is proved or was not answered.

An endpoint behind a load balancer mixes replicas: one lags and answers with empty logs, another
stands on a fork. Blocks must link by parent hash from the cursor on; each log must lie in one of
these blocks by hash; sequence ids must continue without a gap; and the contract's own counter,
read at the page's last block by hash, must agree, because logs cut off at a page's end leave no
gap within it. All that is not so is an InconsistentAnswer: the page is asked for again. So is a
counter that the endpoint does not tell: a replica that lags refuses the call as one without old
state does, and a page that was committed without its payloads could never be mended.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from chainkit.chain import Endpoint
from chainkit.counter import read_counter
from chainkit.decode import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
    payload_topics,
)
from chainkit.deployment import DeploymentRecord
from chainkit.envelope import MAXIMUM_BLOCK_TIMESTAMP
from chainkit.errors import InconsistentAnswer, MalformedData
from chainkit.types import (
    BLOCKCHAIN_ORIGINATOR_ID,
    BlockHeader,
    Cursor,
    Log,
    PayloadEvent,
)
from chainkit_indexer.types import IndexedBlock, PlacedEvent, VerifiedPage

_MAXIMUM_INDEX: Final = 2**31 - 1


def linked_headers(endpoint: Endpoint, first: int, last: int) -> list[BlockHeader]:
    """Return the headers from ``first`` to ``last``, each the parent of the next.

    Raises InconsistentAnswer where one is missing, does not link, or bears a time that an
    envelope cannot hold.
    """
    headers: list[BlockHeader] = []
    for number, header in enumerate(endpoint.headers(range(first, last + 1)), first):
        if header is None:
            raise InconsistentAnswer(f"block {number} at {endpoint.name}", "a block", "nothing")
        if not 0 <= header.timestamp <= MAXIMUM_BLOCK_TIMESTAMP:
            expected = f"a time up to {MAXIMUM_BLOCK_TIMESTAMP}"
            raise InconsistentAnswer(f"block {number}", expected, header.timestamp)
        headers.append(header)
    for parent, child in pairwise(headers):
        if child.parent_hash != parent.hash:
            raise InconsistentAnswer(
                f"block {child.number} at {endpoint.name}",
                f"parent 0x{parent.hash.hex()}",
                f"0x{child.parent_hash.hex()}",
            )
    return headers


def fetch_page(
    endpoint: Endpoint,
    record: DeploymentRecord,
    start: IndexedBlock,
    headers: Sequence[BlockHeader],
) -> VerifiedPage:
    """Return the payloads of some linked blocks, of which the first links to ``start``.

    Raises InconsistentAnswer where logs contradict the headers, the contracts or the counter,
    or where the endpoint has no state to read the counter from.
    """
    logs = endpoint.logs(
        headers[0].number,
        headers[-1].number,
        record.payload_addresses,
        (MESSAGE_SENT_TOPIC, IDENTITY_UPDATE_CREATED_TOPIC),
    )
    of_number = {header.number: header for header in headers}
    events = tuple(_placed_event(log, of_number[log.block_number], record) for log in logs)
    blocks = _count_through(start, headers, events)
    _check_counter(endpoint, record, blocks[-1])
    return VerifiedPage(start, blocks, events)


def _placed_event(log: Log, header: BlockHeader, record: DeploymentRecord) -> PlacedEvent:
    if log.block_hash != header.hash:
        expected, got = f"block hash 0x{header.hash.hex()}", f"0x{log.block_hash.hex()}"
        raise InconsistentAnswer("log", expected, got, log.place)
    if not (0 <= log.transaction_index <= _MAXIMUM_INDEX and 0 <= log.log_index <= _MAXIMUM_INDEX):
        raise InconsistentAnswer("log", "indices of 31 bits", log.transaction_index, log.place)
    return PlacedEvent(_event(log, record), log, header.timestamp)


def _event(log: Log, record: DeploymentRecord) -> PayloadEvent:
    # Each contract has one payload event, so the other's topic is no log that it emitted.
    if log.topics[:1] != (expected := payload_topics(record)[log.address],):
        got = f"0x{log.topics[0].hex()}" if log.topics else "none"
        raise InconsistentAnswer("log", f"topic 0x{expected.hex()}", got, log.place)
    try:
        return decode_payload_event(log)
    except MalformedData as error:
        raise _inconsistent(error) from error


def _count_through(
    start: IndexedBlock, headers: Sequence[BlockHeader], events: Sequence[PlacedEvent]
) -> tuple[IndexedBlock, ...]:
    cursor = Cursor({BLOCKCHAIN_ORIGINATOR_ID: start.last_sequence_id})
    last_in_block: dict[int, int] = {}
    for placed in events:
        try:
            sequence_id = placed.event.sequence_id
            cursor = cursor.advanced(BLOCKCHAIN_ORIGINATOR_ID, sequence_id, placed.log.place)
        except MalformedData as error:
            raise _inconsistent(error) from error
        last_in_block[placed.log.block_number] = sequence_id
    blocks: list[IndexedBlock] = []
    last = start.last_sequence_id
    for header in headers:
        last = last_in_block.get(header.number, last)
        blocks.append(IndexedBlock(header, last))
    return tuple(blocks)


def _check_counter(endpoint: Endpoint, record: DeploymentRecord, last: IndexedBlock) -> None:
    counter = read_counter(endpoint, record, last.header.reference)
    if counter != last.last_sequence_id:
        raise InconsistentAnswer(
            f"logs at {endpoint.name}",
            f"all up to sequence id {counter}",
            f"up to {last.last_sequence_id}",
            f"block {last.header.number}",
        )


def _inconsistent(error: MalformedData) -> InconsistentAnswer:
    return InconsistentAnswer(error.subject, error.expected, error.got, error.place)
