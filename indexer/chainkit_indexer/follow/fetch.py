"""Reads from the chain and checks every answer; ``provenance`` proves the checked page.

An endpoint behind a load balancer mixes replicas: one lags and answers with empty logs, another is
on a fork. Blocks must link by parent hash from the cursor on; the end of a range must come in one
batch with its logs; each log must lie in one of these blocks by hash, and in the bloom filter of
its header; sequence ids must continue without a gap, unless they are sparse. Logs that are cut off
at a page's end leave no gap within the page, so the contracts' own counters, read at the page's
last block by hash, must agree too. Where a deployment has no counter, or the endpoint no state so
old, the bloom filter of each block without logs must exclude them, or consist of all the logs of
the block. Any other answer is an InconsistentAnswer: the page is asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from chainkit.chain import ANY_LOG, Endpoint, LogFilter
from chainkit.contracts.counter import parse_counter, read_counter
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import AccessRefused, InconsistentAnswer, MalformedData, RefusedRequest
from chainkit.ethereum.bloom import bloom_mask, bloom_of, may_hold
from chainkit.protocol.chain_time import MAXIMUM_BLOCK_TIMESTAMP
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.types import BlockHeader, BlockReference, Log
from chainkit_indexer.types import IndexedBlock, PlacedEvent, VerifiedPage, is_served_id

_MAXIMUM_INDEX: Final = 2**31 - 1
_Numbers = Mapping[int, int | None]
"""Originator id to the last sequence id of its counter, None where the counter was not read."""


@dataclass(frozen=True)
class PayloadLogs:
    """The payload contracts of a deployment, prepared to be looked up for every log."""

    deployment: FollowedDeployment

    @cached_property
    def contracts(self) -> Mapping[bytes, PayloadContract]:
        """By address."""
        return {contract.address: contract for contract in self.deployment.contracts}

    @cached_property
    def topics(self) -> Mapping[bytes, bytes]:
        """Address to the first topic of the contract's one payload event."""
        return {contract.address: contract.topic for contract in self.deployment.contracts}

    @cached_property
    def masks(self) -> Mapping[bytes, int]:
        """Address to the bits that a log of the contract sets in a bloom filter."""
        return {address: bloom_mask((address, topic)) for address, topic in self.topics.items()}

    @cached_property
    def wanted(self) -> LogFilter:
        """Filters and counters to ask an endpoint for."""
        return LogFilter(tuple(self.topics), tuple(dict.fromkeys(self.topics.values())))


def linked_headers(endpoint: Endpoint, first: int, last: int) -> list[BlockHeader]:
    """Return the headers from ``first`` to ``last``, each the parent of the next.

    Raises InconsistentAnswer where a header is missing, does not link, or has a time that an
    envelope cannot contain or that is before its parent's.
    """
    return check_links(endpoint, first, endpoint.headers(range(first, last + 1)))


def check_links(
    endpoint: Endpoint, first: int, answered: Sequence[BlockHeader | None]
) -> list[BlockHeader]:
    """Return headers from a height on, each the parent of the next. Raises as above."""
    headers = check_headers(endpoint, range(first, first + len(answered)), answered)
    for parent, child in pairwise(headers):
        if child.parent_hash != parent.hash:
            raise InconsistentAnswer(
                f"block {child.number} at {endpoint.name}",
                f"parent 0x{parent.hash.hex()}",
                f"0x{child.parent_hash.hex()}",
            )
        if child.timestamp < parent.timestamp:
            subject = f"time of block {child.number} at {endpoint.name}"
            raise InconsistentAnswer(subject, f"{parent.timestamp} or later", child.timestamp)
    return headers


def check_headers(
    endpoint: Endpoint, heights: Sequence[int], answered: Sequence[BlockHeader | None]
) -> list[BlockHeader]:
    """Return headers of any heights.

    Raises InconsistentAnswer where one is missing or has a time that an envelope cannot contain.
    """
    headers: list[BlockHeader] = []
    for number, header in zip(heights, answered, strict=True):
        subject = f"block {number} at {endpoint.name}"
        if header is None:
            raise InconsistentAnswer(subject, "a block", "nothing")
        if not 0 <= header.timestamp <= MAXIMUM_BLOCK_TIMESTAMP:
            expected = f"a time up to {MAXIMUM_BLOCK_TIMESTAMP}"
            raise InconsistentAnswer(subject, expected, header.timestamp)
        headers.append(header)
    return headers


def fetch_page(
    endpoint: Endpoint,
    payload_logs: PayloadLogs,
    start: IndexedBlock,
    headers: Sequence[BlockHeader],
) -> VerifiedPage:
    """Return the payloads of some linked blocks, of which the first links to ``start``.

    Asks for each block by hash, for pages near the head, where the block of a height may change.
    Raises InconsistentAnswer where logs contradict the headers, the contracts or the counters.
    """
    logs, numbers = _logs_and_numbers(endpoint, payload_logs, headers)
    return verified_page(endpoint, payload_logs, start, headers, logs, numbers)


def _logs_and_numbers(
    endpoint: Endpoint, payload_logs: PayloadLogs, headers: Sequence[BlockHeader]
) -> tuple[list[Log], _Numbers]:
    """Ask for logs and counters at once. Every endpoint has the state of recent blocks."""
    deployment, last = payload_logs.deployment, headers[-1].reference
    asked = {
        originator_id: counter
        for originator_id, counter in deployment.counters.items()
        if counter is not None and counter.block <= last.number
    }
    calls = [(counter.address, counter.selector) for counter in asked.values()]
    try:
        logs, results = endpoint.logs_and_results(headers, payload_logs.wanted, calls)
    except AccessRefused:
        raise
    except RefusedRequest:
        # Asked one by one, a refusal shows which counter is refused, and why.
        logs = endpoint.logs_of(headers, payload_logs.wanted)
        numbers = _numbers(endpoint, deployment, last)
        if any(numbers[originator_id] is None for originator_id in asked):
            expected = f"the state of the recent block {last}"
            raise InconsistentAnswer(f"counter at {endpoint.name}", expected, "none") from None
        return logs, numbers
    counted = (parse_counter(endpoint, result, last) for result in results)
    below = {each: None if counter is None else 0 for each, counter in deployment.counters.items()}
    return logs, below | dict(zip(asked, counted, strict=True))


def _numbers(endpoint: Endpoint, deployment: FollowedDeployment, block: BlockReference) -> _Numbers:
    return {
        originator_id: None if counter is None else read_counter(endpoint, counter, block)
        for originator_id, counter in deployment.counters.items()
    }


def verified_page(
    endpoint: Endpoint,
    payload_logs: PayloadLogs,
    start: IndexedBlock,
    headers: Sequence[BlockHeader],
    logs: Sequence[Log],
    numbers: _Numbers | None = None,
) -> VerifiedPage:
    """Return a page of linked blocks and their logs, if every check succeeds.

    The counters are asked now if their ``numbers`` did not come with the logs. Raises
    InconsistentAnswer as ``fetch_page``.
    """
    of_number = {header.number: header for header in headers}
    _check_filters(endpoint, payload_logs, of_number, logs)
    events = [
        _placed_event(endpoint, log, of_number[log.block_number], payload_logs) for log in logs
    ]
    _check_transactions(endpoint, logs)
    blocks = _count_through(endpoint, payload_logs.deployment, start, headers, events)
    if numbers is None:
        numbers = _numbers(endpoint, payload_logs.deployment, blocks[-1].header.reference)
    uncounted = _check_counters(endpoint, blocks[-1], numbers)
    if uncounted:
        _check_blooms(endpoint, payload_logs, headers, logs, uncounted)
    return VerifiedPage(start, blocks, tuple(events))


def _check_filters(
    endpoint: Endpoint,
    payload_logs: PayloadLogs,
    of_number: Mapping[int, BlockHeader],
    logs: Sequence[Log],
) -> None:
    """Raise InconsistentAnswer where a header denies a log that came for its block."""
    for number, address in dict.fromkeys((log.block_number, log.address) for log in logs):
        bloom = of_number[number].logs_bloom
        if bloom is not None and not may_hold(bloom, payload_logs.masks[address]):
            subject, got = f"bloom filter of block {number} at {endpoint.name}", "none"
            raise InconsistentAnswer(subject, f"the bits of 0x{address.hex()}", got)


def _check_transactions(endpoint: Endpoint, logs: Sequence[Log]) -> None:
    """Raise InconsistentAnswer where one place in a block has two transactions, or the reverse."""
    hash_at: dict[tuple[bytes, int], bytes] = {}
    place_of: dict[tuple[bytes, bytes], int] = {}
    for log in logs:
        block, index, transaction = log.block_hash, log.transaction_index, log.transaction_hash
        if (
            hash_at.setdefault((block, index), transaction) != transaction
            or place_of.setdefault((block, transaction), index) != index
        ):
            subject, got = f"log at {endpoint.name}", f"another at index {index}"
            raise InconsistentAnswer(subject, "one transaction at a place", got, log.place)


def _placed_event(
    endpoint: Endpoint, log: Log, header: BlockHeader, payload_logs: PayloadLogs
) -> PlacedEvent:
    subject = f"log at {endpoint.name}"
    if log.block_hash != header.hash:
        expected, got = f"block hash 0x{header.hash.hex()}", f"0x{log.block_hash.hex()}"
        raise InconsistentAnswer(subject, expected, got, log.place)
    if not (0 <= log.transaction_index <= _MAXIMUM_INDEX and 0 <= log.log_index <= _MAXIMUM_INDEX):
        raise InconsistentAnswer(subject, "indices of 31 bits", log.transaction_index, log.place)
    # Each contract has one payload event: it emitted no log with the topic of the other event.
    if log.topics[:1] != (expected_topic := payload_logs.topics[log.address],):
        got = f"0x{log.topics[0].hex()}" if log.topics else "none"
        raise InconsistentAnswer(subject, f"topic 0x{expected_topic.hex()}", got, log.place)
    try:
        event = decode_payload_event(log, payload_logs.contracts[log.address])
    except MalformedData as error:
        raise InconsistentAnswer(subject, error.expected, error.got, error.place) from error
    return PlacedEvent(event, log, header.timestamp)


def _count_through(
    endpoint: Endpoint,
    deployment: FollowedDeployment,
    start: IndexedBlock,
    headers: Sequence[BlockHeader],
    events: Sequence[PlacedEvent],
) -> tuple[IndexedBlock, ...]:
    sparse = deployment.sparse_originator_ids
    last = dict(start.sequence_ids)
    after_block: dict[int, Mapping[int, int]] = {}
    number = None
    for placed in events:
        event, log = placed.event, placed.log
        expected = last[event.originator_id] + 1
        is_next = event.sequence_id == expected and is_served_id(expected)
        if not is_next and event.originator_id not in sparse:
            subject = f"logs of originator {event.originator_id} at {endpoint.name}"
            got, place = event.sequence_id, log.place
            if deployment.counters[event.originator_id] is None:
                place += f", or sequence_ids sparse in the record for 0x{log.address.hex()}"
            raise InconsistentAnswer(subject, f"sequence {expected}", got, place)
        if log.block_number != number and number is not None:
            after_block[number] = dict(last)
        number = log.block_number
        if is_served_id(event.sequence_id):
            last[event.originator_id] = max(last[event.originator_id], event.sequence_id)
    if number is not None:
        after_block[number] = last
    blocks: list[IndexedBlock] = []
    sequence_ids = start.sequence_ids
    for header in headers:
        sequence_ids = after_block.get(header.number, sequence_ids)
        blocks.append(IndexedBlock(header, sequence_ids))
    return tuple(blocks)


def _check_counters(endpoint: Endpoint, last: IndexedBlock, numbers: _Numbers) -> frozenset[int]:
    """Compare the page with the contracts' counters; return the originators without a number."""
    for originator_id, counted in numbers.items():
        if counted not in (None, last.sequence_ids[originator_id]):
            raise InconsistentAnswer(
                f"logs at {endpoint.name}",
                f"all of originator {originator_id} up to sequence id {counted}",
                f"up to {last.sequence_ids[originator_id]}",
                f"block {last.header.number}",
            )
    return frozenset(originator_id for originator_id, counted in numbers.items() if counted is None)


def _check_blooms(
    endpoint: Endpoint,
    payload_logs: PayloadLogs,
    headers: Sequence[BlockHeader],
    logs: Sequence[Log],
    originator_ids: frozenset[int],
) -> None:
    """Check blocks without a log of a contract whose filter affirms one.

    A filter may affirm by chance. So all logs of the block, of any contract, are asked for: they
    must make up the whole filter, and none of them may be a payload log that the first answer left
    out.
    """
    masks = {
        address: mask
        for address, mask in payload_logs.masks.items()
        if payload_logs.contracts[address].originator_id in originator_ids
    }
    seen = {(log.block_number, log.address) for log in logs}
    # An originator whose logs are cut off after the last one leaves no gap, not within this block
    # either. Sparse sequence ids show no gap at all.
    sparse = payload_logs.deployment.sparse_originator_ids
    ends = {max((n for n, a in seen if a == address), default=None) for address in masks}
    ends |= {n for n, a in seen if payload_logs.contracts[a].originator_id in sparse}
    doubtful = [
        header
        for header in headers
        if header.number in ends
        or any(
            (header.number, address) not in seen and _may_hold(header, mask)
            for address, mask in masks.items()
        )
    ]
    known = {(log.block_number, log.log_index) for log in logs}
    all_logs = endpoint.logs_of(doubtful, ANY_LOG)
    for log in all_logs:
        is_wanted = log.topics[:1] == (payload_logs.topics.get(log.address),)
        if is_wanted and (log.block_number, log.log_index) not in known:
            subject = f"logs of block {log.block_number} at {endpoint.name}"
            raise InconsistentAnswer(subject, "the same logs twice", f"one more at {log.place}")
    for header in doubtful:
        _check_whole_filter(endpoint, header, all_logs)


def _may_hold(header: BlockHeader, mask: int) -> bool:
    return header.logs_bloom is None or may_hold(header.logs_bloom, mask)


def _check_whole_filter(endpoint: Endpoint, header: BlockHeader, logs: Sequence[Log]) -> None:
    values = [
        value
        for log in logs
        if log.block_number == header.number
        for value in (log.address, *log.topics)
    ]
    if header.logs_bloom not in (None, bloom_of(values)):
        subject = f"logs of block {header.number} at {endpoint.name}"
        got = f"others ({len(values)} addresses and topics)"
        raise InconsistentAnswer(subject, "those of its bloom filter", got)
