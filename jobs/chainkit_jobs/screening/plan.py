"""How an audit is divided: units of the chain's logs, each with the rows that may belong to them.

Only the files' footers are read, and the first payload of each unit. What a stranger's footer says
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
from chainkit_jobs.expected import PayloadContracts
from chainkit_jobs.screening.chain_rows import LOG_COLUMNS, first_sequence
from chainkit_jobs.screening.footers import (
    HIGHEST_SEQUENCE,
    NOWHERE,
    PlacedLogs,
    block_files,
    log_groups,
    row_groups,
)
from chainkit_jobs.screening.node_rows import RowGroup
from chainkit_jobs.screening.rules import PostingRules
from chainkit_jobs.screening.screen import ScreenedNode
from chainkit_jobs.screening.unit import Leftover, ServingNode, Unit
from chainkit_jobs.sources import Export

UNIT_ROWS: Final = 200_000
UNIT_BYTES: Final = 256 * 2**20
"""How many logs a unit takes: what a task does in some seconds, and loses when it is killed."""

_PROBE_ROWS: Final = 256


@dataclass(frozen=True, slots=True)
class NodeInput:
    """A node's export, and what it is held to."""

    node: ScreenedNode
    export: Export


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to do."""

    units: tuple[Unit, ...]
    """In the chain's order."""
    groups: dict[int, tuple[RowGroup, ...]]
    """Node id to all its row groups."""

    def leftovers(self, ranges: dict[str, tuple[int, int]]) -> list[Leftover]:
        """Return the rows that no unit has seen, given the sequences that each unit did see.

        ``ranges`` is unit name to first and last sequence, for units that hold payloads.
        """
        found = []
        for node_id, groups in self.groups.items():
            seen = self._seen(node_id, ranges)
            for group in groups:
                own = _merged(seen.get((group.path, group.group), []))
                is_whole = any(a <= group.lowest and group.highest <= b for a, b in own)
                if not (group.is_guided and is_whole):
                    name = _name([node_id, group.file_digest, group.group, own])
                    found.append(Leftover(name, node_id, group, tuple(own)))
        return found

    def recall(self, sequences: Sequence[int], ranges: dict[str, tuple[int, int]]) -> list[Unit]:
        """Return the units that look again at sequences which were right, and at no others."""
        found = []
        ordered = sorted(sequences)
        for unit in self.units:
            first, last = ranges.get(unit.name, NOWHERE)
            own = tuple(ordered[bisect_left(ordered, first) : bisect_right(ordered, last)])
            if own:
                again = replace(unit, recalled=own)
                found.append(replace(again, name=_unit_name(again)))
        return found

    def _seen(
        self, node_id: int, ranges: dict[str, tuple[int, int]]
    ) -> dict[tuple[str, int], list[tuple[int, int]]]:
        seen: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for unit in self.units:
            for serving in unit.nodes:
                if serving.node.node_id == node_id and unit.name in ranges:
                    for group in serving.groups:
                        seen.setdefault((group.path, group.group), []).append(ranges[unit.name])
        return seen


def make_plan(
    chain: Export,
    nodes: Sequence[NodeInput],
    contracts: PayloadContracts,
    rules: PostingRules,
    *,
    with_signatures: bool,
) -> Plan:
    """Divide an audit. Raises StoreError where a file of the chain export cannot be read."""
    groups = {each.node.node_id: tuple(row_groups(each.export)) for each in nodes}
    blocks = block_files(chain)
    parts = list(_log_parts(chain))
    firsts = [_first_sequence(part, contracts) for part in parts]
    units = []
    for number, part in enumerate(parts):
        lowest, highest = _guess(firsts, number)
        first_block, last_block = min(each.first for each in part), max(each.last for each in part)
        unit = Unit(
            name="",
            logs=tuple(each.group for each in part),
            blocks=tuple(
                file for file, first, last in blocks if first <= last_block and first_block <= last
            ),
            first_block=first_block,
            last_block=last_block,
            contracts=contracts,
            rules=rules,
            nodes=tuple(
                ServingNode(
                    _clipped(each.node, first_block, last_block),
                    tuple(
                        group
                        for group in groups[each.node.node_id]
                        if group.is_guided and group.lowest <= highest and lowest <= group.highest
                    ),
                )
                for each in nodes
            ),
            with_signatures=with_signatures,
        )
        units.append(replace(unit, name=_unit_name(unit)))
    return Plan(tuple(units), groups)


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


def _guess(firsts: Sequence[int | None], number: int) -> tuple[int, int]:
    """Return the sequences that a unit should hold, by its first one and the next unit's."""
    first = firsts[number]
    if first is None:
        return NOWHERE
    after = next((each for each in firsts[number + 1 :] if each is not None), None)
    return first, HIGHEST_SEQUENCE if after is None else max(first, after - 1)


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


def _clipped(node: ScreenedNode, first_block: int, last_block: int) -> ScreenedNode:
    """Name only what of a node's range a unit depends on: a longer range changes no other unit."""
    first, last = max(node.first_block, first_block), min(node.last_block, last_block)
    first, last = (first, last) if first <= last else NOWHERE
    return replace(node, first_block=first, last_block=last)


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


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
                    [[group.file_digest, group.group, group.first_row] for group in each.groups],
                ]
                for each in unit.nodes
            ],
            unit.with_signatures,
            unit.recalled,
        ]
    )


def _name(content: Any) -> str:
    """Name a piece of work by all that its result depends on."""
    text = json.dumps([__version__, content], separators=(",", ":"))
    return "u" + hashlib.sha256(text.encode()).hexdigest()
