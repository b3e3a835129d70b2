"""Which faults stand where: at random, each apart from all others, and the same for a seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.audit.exports.shape import Shape, is_quarantined, key_of
from benchmarks.audit.faults.chain import CHAIN_KINDS
from benchmarks.audit.faults.kind import BY_SIGNATURE, Kind, Place, Window
from benchmarks.audit.faults.kinds import KINDS
from benchmarks.audit.faults.wire import Payload
from chainkit.errors import ConfigurationError
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

_SLOT: Final = 8
"""Sequences that a fault has for itself, so that it changes nothing about the next one."""
_MARGIN: Final = 2


class Finding(NamedTuple):
    """A finding that an audit must give, without its words."""

    node_id: int | None
    """None for a finding about the chain's export."""
    code: str
    originator_id: int | None
    sequence_id: int | None
    """None, as the originator, for a finding about another event than a payload."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault at its place."""

    kind: str
    first: int
    """The first sequence that takes part."""
    node_id: int | None
    """None for a fault in the chain's export."""

    @property
    def width(self) -> int:
        """How many sequences take part."""
        kinds: Mapping[str, Kind] = KINDS
        return (CHAIN_KINDS if self.node_id is None else kinds)[self.kind].width


@dataclass(frozen=True, slots=True)
class Plan:
    """Faults in the exports of a shape."""

    shape: Shape
    faults: tuple[Fault, ...]

    def findings(self, checks_signatures: bool = True) -> list[Finding]:
        """Return all that an audit must find, and nothing else."""
        found = [finding for fault in self.faults for finding in findings_of(self.shape, fault)]
        return [each for each in found if checks_signatures or each.code not in BY_SIGNATURE]


def write_plan(path: Path, plan: Plan) -> None:
    """Write a JSON line per fault: where it is, and what must be found of it."""
    lines = (
        json.dumps(
            asdict(fault) | {"findings": [each[1:] for each in findings_of(plan.shape, fault)]}
        )
        for fault in plan.faults
    )
    path.write_text("".join(f"{line}\n" for line in lines))


def findings_of(shape: Shape, fault: Fault) -> list[Finding]:
    """Return what an audit that checks signatures must find of one fault."""
    if fault.node_id is None:
        chain_kind = CHAIN_KINDS[fault.kind]
        sequence_id = fault.first + chain_kind.payload
        return [Finding(None, chain_kind.code, BLOCKCHAIN_ORIGINATOR_ID, sequence_id)]
    kind = KINDS[fault.kind]
    places = range(fault.first, fault.first + kind.width)
    window = window_of(shape, fault.node_id, [Payload(each, 0, b"", b"") for each in places])
    return [Finding(fault.node_id, *found) for found in kind.findings(window)]


def window_of(shape: Shape, node_id: int, payloads: Iterable[Payload]) -> Window:
    """Return what a kind is told of the payloads that it takes part in."""
    others = [each for each in shape.node_ids if each != node_id]
    other_key = key_of(others[0] if others else 0)
    return Window(tuple(payloads), key_of(node_id), other_key, shape.rows)


def plan_once(shape: Shape, node_ids: Sequence[int]) -> Plan:
    """Put each kind once, far from all others, at one of some nodes in turn.

    Raises ConfigurationError where the shape has too few payloads.
    """
    places = _Places(shape)
    pairs = zip(KINDS, cycle(node_ids), strict=False)
    return Plan(shape, tuple(places.fault(kind, node_id) for kind, node_id in pairs))


def plan_together(shape: Shape, count: int, chain_count: int = 0) -> Plan:
    """Spread faults of all kinds over all nodes, and over the chain's export.

    Those that would meet at one node are there once. Raises ConfigurationError where there is no
    room for all of them.
    """
    places = _Places(shape)
    chain = [places.fault(kind, None) for kind in islice(cycle(CHAIN_KINDS), chain_count)]
    nodes = [places.fault(kind, node_id) for kind, node_id in islice(_turns(shape), count)]
    return Plan(shape, (*chain, *nodes))


def _turns(shape: Shape) -> Iterator[tuple[str, int]]:
    again = [
        kind.name
        for kind in KINDS.values()
        if not kind.is_alone and kind.place not in (Place.FIRST, Place.LAST)
    ]
    yield from ((kind, node_id) for kind in KINDS for node_id in shape.node_ids)
    while True:
        yield from ((kind, node_id) for kind in again for node_id in shape.node_ids)


class _Places:
    """Hands out the places of a shape, each once."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        rng = np.random.default_rng(shape.seed)
        # The first and the last payloads are for those kinds that stand there.
        slots = rng.permutation(np.arange(1, max(1, shape.rows // _SLOT - 1)))
        self._slots = (_MARGIN + _SLOT * int(slot) for slot in slots)
        malformed = [each for each in range(1, shape.rows + 1) if is_quarantined(each)]
        self._malformed = iter(rng.permutation(malformed).tolist())

    def fault(self, kind: str, node_id: int | None) -> Fault:
        fault = Fault(kind, 0, node_id)
        place = Place.ANYWHERE if node_id is None else KINDS[kind].place
        try:
            return replace(fault, first=self._first(place, fault.width))
        except StopIteration as error:
            expected = f"room for all faults, of which {kind} is one"
            raise ConfigurationError(f"{self._shape.rows} payloads", expected, "none") from error

    def _first(self, place: Place, width: int) -> int:
        match place:
            case Place.FIRST:
                return 1
            case Place.LAST:
                rows = self._shape.rows
                return rows - 1 if is_quarantined(rows) else rows
            case Place.QUARANTINED:
                return int(next(self._malformed))
        return next(first for first in self._slots if self._is_free(first, width))

    def _is_free(self, first: int, width: int) -> bool:
        """Tell whether all stand in one block, and so in one batch, and may be served."""
        last = first + width - 1
        is_one_block = self._shape.block_of(first) == self._shape.block_of(last)
        return is_one_block and not any(map(is_quarantined, range(first, last + 1)))
