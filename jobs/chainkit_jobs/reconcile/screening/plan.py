"""The division of an audit: units of the chain's logs, each with the rows that may belong to it.

Only the files' footers are read, and the first payload of each unit. A stranger's footer only
guides rows to a unit; it is checked where the rows are read, and decides nothing.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pyarrow.parquet as pq

from chainkit import __version__
from chainkit.errors import StoreError
from chainkit.exports import PARQUET_ERRORS, one_line
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.expected import PayloadContracts
from chainkit_jobs.reconcile.scope import AuditScope
from chainkit_jobs.reconcile.screening.chain_rows import LOG_COLUMNS, first_sequence
from chainkit_jobs.reconcile.screening.footers import (
    NOWHERE,
    PlacedLogs,
    block_files,
    log_groups,
    row_groups,
)
from chainkit_jobs.reconcile.screening.node_rows import HIGHEST_SEQUENCE, RowGroup, Share
from chainkit_jobs.reconcile.screening.rules import posting_rules
from chainkit_jobs.reconcile.screening.screen import ScreenedNode
from chainkit_jobs.reconcile.screening.unit import Leftover, ServingNode, Unit
from chainkit_jobs.sources import Export

UNIT_ROWS: Final = 200_000
UNIT_BYTES: Final = 256 * 2**20
"""Logs of a unit: a task's work of some seconds, which is lost when the task is killed."""

_PROBE_ROWS: Final = 256

_FORMAT: Final = 2
"""The version increases when a kept result changes its form: older results are then not read."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of an audit."""

    units: tuple[Unit, ...]
    """In the chain's order."""
    leftovers: tuple[Leftover, ...]
    """Row groups that no unit was given."""
    rows: dict[int, int]
    """Node id to the number of all its rows."""
    unreadable: dict[int, str]
    """Node id to the reason why its footers cannot be read; no unit has such a node."""

    def recall(self, sequences: Sequence[int], ranges: dict[str, tuple[int, int]]) -> list[Unit]:
        """Return the units that read sequences again which were right, and no others."""
        found = []
        ordered = sorted(sequences)
        for unit in self.units:
            first, last = ranges.get(unit.name, NOWHERE)
            own = tuple(ordered[bisect_left(ordered, first) : bisect_right(ordered, last)])
            if own:
                again = replace(unit, recalled=own)
                found.append(replace(again, name=_unit_name(again)))
        return found


def make_plan(scope: AuditScope) -> Plan:
    """Divide an audit. Raises StoreError where a file of the chain export cannot be read."""
    parts = list(_log_parts(scope.chain))
    guesses = _guesses([_first_sequence(part, scope.own_contracts) for part in parts])
    groups, unreadable = _row_groups(scope.compared)
    divided = {node_id: divide(own, guesses) for node_id, own in groups.items()}
    rules, blocks = posting_rules(scope.administration), block_files(scope.chain)
    nodes = [_screened_node(scope, node) for node in scope.compared if node.node.node_id in groups]
    units = []
    for number, part in enumerate(parts):
        first_block, last_block = min(each.first for each in part), max(each.last for each in part)
        unit = Unit(
            name="",
            logs=tuple(each.group for each in part),
            blocks=tuple(
                file for file, first, last in blocks if first <= last_block and first_block <= last
            ),
            first_block=first_block,
            last_block=last_block,
            contracts=scope.own_contracts,
            rules=rules,
            nodes=tuple(
                ServingNode(
                    _clipped(node, first_block, last_block),
                    tuple(divided[node.node_id].shares.get(number, ())),
                )
                for node in nodes
            ),
            with_signatures=scope.options.with_signatures,
            with_quarantined=scope.options.with_tables,
        )
        units.append(replace(unit, name=_unit_name(unit)))
    return Plan(
        units=tuple(units),
        leftovers=tuple(
            Leftover(_name([node_id, *_group_content(group)]), node_id, group)
            for node_id, own in divided.items()
            for group in own.leftovers
        ),
        rows={node_id: sum(group.rows for group in own) for node_id, own in groups.items()},
        unreadable=unreadable,
    )


def _row_groups(
    nodes: Sequence[NodeExport],
) -> tuple[dict[int, list[RowGroup]], dict[int, str]]:
    """Return the row groups by node id, and the reasons where they cannot be read."""
    found, unreadable = {}, {}
    for node in nodes:
        try:
            found[node.node.node_id] = row_groups(node.export)
        except (StoreError, ArithmeticError, *PARQUET_ERRORS) as error:
            unreadable[node.node.node_id] = one_line(error)
    return found, unreadable


@dataclass(frozen=True, slots=True)
class Divided:
    """A node's rows, each with one unit or left over."""

    shares: dict[int, list[Share]]
    """By the number of the unit."""
    leftovers: list[RowGroup]


def divide(groups: Sequence[RowGroup], guesses: Sequence[tuple[int, int]]) -> Divided:
    """Divide a node's rows among units, by the sequences that each unit should hold.

    A group goes to the units whose sequences contain nearly all of its rows. Each of these units is
    responsible for its own sequences, the first also for all sequences outside of these units.
    """
    numbers = [number for number, guess in enumerate(guesses) if guess != NOWHERE]
    firsts = [guesses[number][0] for number in numbers]
    found = Divided({}, [])
    for group in groups:
        last = bisect_right(firsts, group.last)
        own = numbers[max(0, bisect_right(firsts, group.first) - 1) : last]
        if not group.is_guided or not own:
            found.leftovers.append(group)
            continue
        for number in own:
            ranges = [guesses[number]]
            if number == own[0]:
                ranges = [(0, guesses[number][1]), (guesses[own[-1]][1] + 1, HIGHEST_SEQUENCE)]
            share = Share(group, _within(ranges, group.lowest, group.highest))
            found.shares.setdefault(number, []).append(share)
    return found


def _within(
    ranges: Sequence[tuple[int, int]], lowest: int, highest: int
) -> tuple[tuple[int, int], ...]:
    """Cut ranges off where no row of a group lies: a chain that grows changes no other share."""
    cut = [(max(first, lowest), min(last, highest)) for first, last in ranges]
    return tuple((first, last) for first, last in cut if first <= last)


def _log_parts(chain: Export) -> Iterator[list[PlacedLogs]]:
    part: list[PlacedLogs] = []
    rows = size = 0
    for placed in log_groups(chain):
        if part and (
            rows + placed.group.rows > UNIT_ROWS or size + placed.group.bytes > UNIT_BYTES
        ):
            yield part
            part, rows, size = [], 0, 0
        part.append(placed)
        rows, size = rows + placed.group.rows, size + placed.group.bytes
    if part:
        yield part


def _guesses(firsts: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return the sequences that each unit should hold, by its first one and the next unit's.

    The ranges ascend, and follow each other without a gap; a unit that is out of order gets none.
    """
    found = [NOWHERE] * len(firsts)
    end = HIGHEST_SEQUENCE
    for number, first in reversed(list(enumerate(firsts))):
        if first is not None and first <= end:
            found[number], end = (first, end), first - 1
    return found


def _first_sequence(part: Sequence[PlacedLogs], contracts: PayloadContracts) -> int | None:
    for placed in part:
        with pq.ParquetFile(placed.group.path) as file:
            for batch in file.iter_batches(
                _PROBE_ROWS, row_groups=[placed.group.group], columns=list(LOG_COLUMNS)
            ):
                found = first_sequence(batch, contracts)
                if found is not None:
                    return found
    return None


def _screened_node(scope: AuditScope, node: NodeExport) -> ScreenedNode:
    first, last = scope.compared_blocks(node)
    return ScreenedNode(
        node.node.node_id, node.node.signing_key, first, last, node.highest_required
    )


def _clipped(node: ScreenedNode, first_block: int, last_block: int) -> ScreenedNode:
    """Name only what of a node's range a unit depends on: a longer range changes no other unit."""
    first, last = max(node.first_block, first_block), min(node.last_block, last_block)
    first, last = (first, last) if first <= last else NOWHERE
    return replace(node, first_block=first, last_block=last)


def _unit_name(unit: Unit) -> str:
    return _name(
        [
            [[each.file_digest, each.group] for each in unit.logs],
            [each.file_digest for each in unit.blocks],
            [unit.contracts.group_messages.hex(), unit.contracts.identity_updates.hex()],
            [asdict(rule) for rule in unit.rules.rules],
            [
                [
                    each.node.node_id,
                    each.node.registered_key.hex(),
                    each.node.first_block,
                    each.node.last_block,
                    each.node.answered_to,
                    [[*_group_content(share.group), share.ranges] for share in each.shares],
                ]
                for each in unit.nodes
            ],
            unit.with_signatures,
            unit.with_quarantined,
            unit.recalled,
        ]
    )


def _group_content(group: RowGroup) -> list[Any]:
    return [group.file_digest, group.group, group.first_row]


def _name(content: Any) -> str:
    """Name a piece of work by all that its result depends on."""
    text = json.dumps([__version__, _FORMAT, content], separators=(",", ":"))
    return "u" + hashlib.sha256(text.encode()).hexdigest()
