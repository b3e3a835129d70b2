"""JOURNAL_CONTRADICTS: what became of retracted payloads, by a journal and by the chain."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.node_tables.rows import finding, in_words

KEPT: Final = "kept"
MOVED: Final = "moved"
DROPPED: Final = "dropped"

_Payload = tuple[int, bytes, str | None]
"""Originator id, transaction hash and digest: by which a payload is known after a reorg."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A payload that a reorg took back, by a node's journal (chainkit.exports.tables.JOURNAL)."""

    node_id: int
    reorg_id: int
    originator_id: int
    sequence_id: int
    transaction_hash: bytes
    outcome: str
    new_sequence_id: int | None
    payload_sha256: str | None
    """In hex; None for a payload that was in quarantine."""
    digest: bytes | None
    """The digest that the envelope's BlockchainProof signs."""

    @property
    def payload(self) -> _Payload:
        """The payload's key."""
        return self.originator_id, self.transaction_hash, self.payload_sha256

    @property
    def target(self) -> int | None:
        """The payload's present sequence by the journal; None if it has none."""
        return {KEPT: self.sequence_id, MOVED: self.new_sequence_id}.get(self.outcome)


@dataclass(frozen=True, slots=True)
class Held:
    """A payload that the chain holds."""

    originator_id: int
    sequence_id: int
    transaction_hash: bytes
    payload_sha256: str
    block_number: int
    log_index: int

    @property
    def payload(self) -> _Payload:
        """The payload's key."""
        return self.originator_id, self.transaction_hash, self.payload_sha256


def check_journal(
    entries: Iterable[Entry],
    held: Iterable[Held],
    last_blocks: Mapping[int, int],
    counter: int | None,
) -> list[dict[str, Any]]:
    """Return findings, one per node and sequence, about entries that the chain contradicts.

    ``entries`` are all entries of the transactions in question, ``held`` all payloads of these
    transactions and under the entries' sequences. ``last_blocks`` has each node's last block,
    ``counter`` is the contracts' in the chain export's last block, None where it was not read.
    """
    by_node: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_node[entry.node_id].append(entry)
    payloads = tuple(held)
    found = []
    for node_id, own in sorted(by_node.items()):
        wrong: dict[tuple[int, int], list[tuple[Entry, str]]] = defaultdict(list)
        for entry, problem in _problems(own, payloads, last_blocks[node_id], counter):
            wrong[entry.originator_id, entry.sequence_id].append((entry, problem))
        found += [_finding(node_id, key, each) for key, each in sorted(wrong.items())]
    return found


def _finding(
    node_id: int, key: tuple[int, int], problems: list[tuple[Entry, str]]
) -> dict[str, Any]:
    problems.sort(key=lambda each: each[0].reorg_id)
    return finding(
        Code.JOURNAL_CONTRADICTS,
        node_id,
        in_words(
            f"reorg {entry.reorg_id}, transaction 0x{entry.transaction_hash.hex()}: {problem}"
            for entry, problem in problems
        ),
        originator_id=key[0],
        sequence_id=Decimal(key[1]),
        served_digest=problems[-1][0].digest,
    )


def _problems(
    entries: list[Entry], held: tuple[Held, ...], last_block: int, counter: int | None
) -> Iterator[tuple[Entry, str]]:
    by_key = {(each.originator_id, each.sequence_id): each for each in held}
    answered: Counter[_Payload] = Counter()
    latest = _latest_reorgs(entries)
    for entry in entries:
        # A later reorg may have taken back what this entry records of an earlier one.
        place = entry.originator_id, entry.target, entry.transaction_hash
        if latest.get(place, 0) > entry.reorg_id:
            continue
        problem = _problem(entry, by_key, counter)
        if problem is not None:
            yield entry, problem
        elif entry.target is not None:
            answered[entry.payload] += 1
    yield from _dropped_in_vain(entries, held, last_block, answered)


def _latest_reorgs(entries: list[Entry]) -> dict[tuple[int, int | None, bytes], int]:
    latest: dict[tuple[int, int | None, bytes], int] = {}
    for entry in entries:
        place = entry.originator_id, entry.sequence_id, entry.transaction_hash
        latest[place] = max(entry.reorg_id, latest.get(place, 0))
    return latest


def _problem(
    entry: Entry, by_key: Mapping[tuple[int, int], Held], counter: int | None
) -> str | None:
    if entry.outcome not in (KEPT, MOVED, DROPPED):
        return f"expected kept, moved or dropped, got {entry.outcome!r}"
    is_moved = entry.outcome == MOVED
    if (
        is_moved != (entry.new_sequence_id is not None)
        or entry.new_sequence_id == entry.sequence_id
    ):
        return f"{entry.outcome}, with new sequence {entry.new_sequence_id}"
    if entry.target is None:
        return None
    said = f"{entry.outcome} to sequence {entry.target}" if is_moved else entry.outcome
    held = by_key.get((entry.originator_id, entry.target))
    if held is None:
        is_impossible = (
            entry.originator_id != BLOCKCHAIN_ORIGINATOR_ID
            or entry.target < 1
            or (counter is not None and entry.target > counter)
        )
        return f"{said}, which the contracts never gave out" if is_impossible else None
    place = f"in block {held.block_number}, log {held.log_index}"
    if held.transaction_hash != entry.transaction_hash:
        return f"{said}, which {place} is of transaction 0x{held.transaction_hash.hex()}"
    if entry.payload_sha256 not in (None, held.payload_sha256):
        return f"{said}, which {place} is another payload of that transaction"
    return None


def _dropped_in_vain(
    entries: list[Entry],
    held: tuple[Held, ...],
    last_block: int,
    answered: Counter[_Payload],
) -> Iterator[tuple[Entry, str]]:
    """One payload of the chain answers one entry: a transaction may post the same one twice."""
    waiting: dict[_Payload, deque[Entry]] = defaultdict(deque)
    for entry in sorted(entries, key=lambda each: (each.reorg_id, each.sequence_id)):
        if entry.outcome == DROPPED:
            waiting[entry.payload].append(entry)
    for each in sorted(held, key=lambda each: each.sequence_id):
        if each.block_number > last_block:
            continue
        if answered[each.payload]:
            answered[each.payload] -= 1
        elif waiting[each.payload]:
            place = f"block {each.block_number}, log {each.log_index}"
            problem = f"dropped, though {place} holds it as sequence {each.sequence_id}"
            yield waiting[each.payload].popleft(), problem
