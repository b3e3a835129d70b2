"""The audit trail: the council's acts, and acts without it, rebuilt from the chain.

Everything is read up to one block. Logs are asked for by range and compared with those of each
receipt; the blocks of all receipts are asked for once more at the end, so that a reorg meanwhile
cannot mix branches. The contracts show whether logs are hidden: the result of the events must equal
their state at the end, and the Safe's nonce counts its executions.

An execution of the Safe is proved by its hash. The sender of a transaction, and the calls of an
account with a key, are not proved: the endpoint states them. Transactions without an event, such as
those that reverted, are in no log and not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from chainkit.chain import Endpoint, LogFilter
from chainkit.chain.log_ranges import logs_by_pieces
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.registry import Registry, read_history, telling
from chainkit.contracts.state import ContractState
from chainkit.council.log.events import (
    LOG_TOPICS,
    SAFE,
    SAFE_TOPICS,
    TrailEvent,
    contradictions,
    of_log,
    of_registry,
)
from chainkit.council.log.executions import MOST_NONCES, SafeHistory, safe_history
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.log.transactions import Entry, EntryReader
from chainkit.council.proposal.account_state import read_account_state
from chainkit.council.proposal.council import Council
from chainkit.errors import StateUnavailable
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference

Advance = Callable[[int], None]
Progress = Callable[[str, int], AbstractContextManager[Advance]]
"""Shows a person how much of a number of things, which the text names, is done."""

_NOT_COUNTED: Final = (
    "the endpoint keeps no state of the block before: that no execution is hidden is not checked"
)


@dataclass(frozen=True, slots=True)
class Trail:
    """Everything that was found in a range of blocks, both ends included."""

    first: int
    """Height."""
    block: BlockReference
    """The last one."""
    entries: tuple[Entry, ...]
    """By transaction, in the order of the chain."""
    cautions: tuple[str, ...]
    """Cautions about the account and the reading, a line each, safe to print."""
    alarms: tuple[str, ...]
    """Contradictions to the events that were found, likewise."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was done past the council's account, nor hidden."""
        return not self.alarms and not any(entry.alarms for entry in self.entries)


def read_trail(
    endpoint: Endpoint,
    record: DeploymentRecord,
    council: Council,
    kept: KeptProposals,
    first: int,
    block: BlockReference,
    progress: Progress = lambda _, __: nullcontext(lambda _: None),
) -> Trail:
    """Read the trail from a height up to a block.

    Raises ConfigurationError where the account is not the one that the council file names,
    InconsistentAnswer where the endpoint's answers do not fit together or a reorg came between.
    """
    state = ContractState(endpoint, block)
    account = read_account_state(state, council)
    start = max(first, record.node_registry.block)
    with progress("blocks", 2 * (block.number + 1) - first - start) as advance:
        found = [
            *_registry_events(endpoint, record, start, block, advance),
            *_log_events(endpoint, record, council, first, block, advance),
        ]
    events = sorted(found, key=lambda event: (event.block.number, event.log_index))
    of_safe = [event for event in events if event.contract == SAFE]
    history = safe_history(of_safe, account.owners, account.nonce)
    reader = EntryReader(endpoint, record, council, history, kept)
    entries = _read_entries(reader, events, progress)
    cautions, alarms = list(account.cautions), list(contradictions(state, record, events, first))
    if council.safe:
        before = _nonce_before(endpoint, council, first)
        if before is None:
            cautions.append(_NOT_COUNTED)
        alarms += _hidden(history, before)
    _check_blocks(endpoint, events, block)
    return Trail(first, block, entries, tuple(cautions), tuple(alarms))


def _read_entries(
    reader: EntryReader, events: Sequence[TrailEvent], progress: Progress
) -> tuple[Entry, ...]:
    by_transaction = {
        transaction_hash: list(group)
        for transaction_hash, group in groupby(events, lambda event: event.transaction_hash)
    }
    entries: list[Entry] = []
    with progress("transactions", len(by_transaction)) as advance:
        for transaction_hash, group in by_transaction.items():
            entries.append(reader.read(transaction_hash, group))
            advance(1)
    return tuple(entries)


def _registry_events(
    endpoint: Endpoint,
    record: DeploymentRecord,
    start: int,
    block: BlockReference,
    advance: Advance,
) -> list[TrailEvent]:
    contract = record.node_registry
    if start > block.number:
        return []
    registry = Registry(endpoint, contract.address)
    found = read_history(registry, start, block, start == contract.block, advance)
    detailed = {(event.block.number, event.log_index) for event in telling(found)}
    return [
        of_registry(event, contract.address, (event.block.number, event.log_index) not in detailed)
        for event in found
    ]


def _log_events(
    endpoint: Endpoint,
    record: DeploymentRecord,
    council: Council,
    first: int,
    block: BlockReference,
    advance: Advance,
) -> Iterator[TrailEvent]:
    """Yield the events of the two logs and of the Safe, all but payloads."""
    names = {contract.address: contract.name for contract in record.sequenced_logs}
    topics = LOG_TOPICS
    if council.safe:
        names[council.account] = SAFE
        topics += SAFE_TOPICS
    for blocks, logs in logs_by_pieces(
        endpoint, first, block.number, LogFilter(tuple(names), topics)
    ):
        # The Safe can emit a log's topics, and a log the Safe's, only by code that is not theirs.
        yield from (of_log(names[log.address], log) for log in logs)
        advance(blocks)


def _nonce_before(endpoint: Endpoint, council: Council, first: int) -> int | None:
    """Return the Safe's nonce before the range, None where the endpoint does not keep it."""
    if first == 0:
        return 0
    state = ContractState(endpoint, endpoint.header(first - 1).reference)
    try:
        return int(state.ask(SAFE, council.account, "nonce")) if state.code(council.account) else 0
    except StateUnavailable:
        return None


def _hidden(history: SafeHistory, before: int | None) -> Iterator[str]:
    if history.nonce > MOST_NONCES:
        yield (
            f"the Safe's nonce is {history.nonce}, which no owners count up to: other code has"
            " rewritten it, or the endpoint invents it; executions may be without their calls here"
        )
    found = sum(map(len, history.nonces.values()))
    counted = found if before is None else history.nonce - before
    if found != counted:
        yield (
            f"the Safe's nonce counts {counted} executions in these blocks, its events {found}:"
            " some are hidden, or other code has spoken for it"
        )


def _check_blocks(endpoint: Endpoint, events: Sequence[TrailEvent], block: BlockReference) -> None:
    """Raise InconsistentAnswer unless all blocks are still the chain's."""
    wanted = {event.block.number: event.block.hash for event in events} | {block.number: block.hash}
    headers = endpoint.headers(sorted(wanted))
    for (number, expected), header in zip(sorted(wanted.items()), headers, strict=True):
        if header is None or header.hash != expected:
            got = "nothing" if header is None else hex0x(header.hash)
            raise endpoint.inconsistent(f"block {number}", hex0x(expected), got)
