"""The variable in a storage slot: Solidity's layout, inverted.

The compiler gives each variable's slot; this module returns the variables of a slot. A mapping
keeps a value at keccak256(key, slot), a list and a long text begin at keccak256(slot). So a slot of
a list or a text is found by its distance behind that hash, a slot of a mapping by its keys.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.contracts.storage_layout import Layout, StoredType
from chainkit.council.simulation.keys import CandidateKeys
from chainkit.council.simulation.layouts import UINT256
from chainkit.signatures import keccak256

SLOT_BYTES: Final = 32

_LONGEST: Final = 2**32
"""Slots behind the beginning of a list or a text that still belong to it: no hash is this close by
chance."""


@dataclass(frozen=True, slots=True)
class Place:
    """A variable, or a part of one, and its place."""

    label: str
    """As in Solidity, without leading underscores: ``nodes[300].isHealthy``."""
    slot: int
    offset: int
    """Bytes from the low end of the slot."""
    type: StoredType


SlotNames = Mapping[int, tuple[Place, ...]]
"""The variable of each slot; a long text also by the slots of its characters."""


def mapping_slot(slot: int, key: bytes) -> int:
    """Return where a mapping at a slot keeps the value of a key of 32 bytes."""
    return int.from_bytes(keccak256(key + slot.to_bytes(SLOT_BYTES, "big")), "big")


def data_slot(slot: int) -> int:
    """Return where the values of a list, or of a text of more than 31 bytes, at a slot begin."""
    return int.from_bytes(keccak256(slot.to_bytes(SLOT_BYTES, "big")), "big")


def name_slots(layout: Layout, keys: CandidateKeys, wanted: Collection[int]) -> SlotNames:
    """Return what lies in each of the wanted slots; those that nothing is known of are left out.

    Not named: arrays of fixed length, mappings within lists, and mappings by text. None of the
    contracts has one.
    """
    search = _Search(keys, wanted)
    for variable in layout:
        search.walk(_part("", variable.label, variable.slot, variable.offset, variable.type))
    search.open_mappings()
    return {slot: tuple(places) for slot, places in search.found.items()}


class _Search:
    """Goes through a layout until all wanted slots are named."""

    def __init__(self, keys: CandidateKeys, wanted: Collection[int]) -> None:
        self._keys = keys
        self._wanted = frozenset(wanted)
        self._sorted = sorted(self._wanted)
        self._mappings: list[Place] = []
        self.found: dict[int, list[Place]] = {}

    def walk(self, place: Place) -> None:
        """Note what of a variable lies in wanted slots; mappings are put off."""
        type_ = place.type
        if type_.encoding == "mapping":
            self._mappings.append(place)
        elif type_.encoding == "dynamic_array":
            self._note(place.slot, Place(f"{place.label}.length", place.slot, 0, UINT256))
            self._walk_elements(place)
        elif type_.encoding == "bytes":
            self._note(place.slot, place)
            for slot in self._wanted_behind(data_slot(place.slot)):
                self._note(slot, place)
        elif type_.members:
            for member in type_.members:
                slot = place.slot + member.slot
                self.walk(_part(place.label, member.label, slot, member.offset, member.type))
        elif type_.element is None:
            self._note(place.slot, place)

    def open_mappings(self) -> None:
        """Try the keys of all mappings before the many more of mappings within values."""
        while self._mappings:
            level, self._mappings = self._mappings, []
            for mapping in level:
                if self.found.keys() >= self._wanted:
                    return
                self._open(mapping)

    def _open(self, mapping: Place) -> None:
        element = mapping.type.element
        assert element is not None
        for key, words in self._keys.of_type(mapping.type.key):
            slot = mapping_slot(mapping.slot, key)
            self.walk(Place(f"{mapping.label}[{words}]", slot, 0, element))

    def _walk_elements(self, array: Place) -> None:
        element, start = array.type.element, data_slot(array.slot)
        assert element is not None
        for index, slot, offset in self._positions(start, element.size):
            self.walk(Place(f"{array.label}[{index}]", slot, offset, element))

    def _positions(self, start: int, size: int) -> Iterator[tuple[int, int, int]]:
        """Yield index, slot and offset of the elements that have a part in a wanted slot."""
        slots, fitting = -(-size // SLOT_BYTES), SLOT_BYTES // size
        parts = [slot - start for slot in self._wanted_behind(start)]
        if fitting > 1:
            for part in parts:
                for index in range(fitting):
                    yield part * fitting + index, start + part, index * size
        else:
            for index in sorted({part // slots for part in parts}):
                yield index, start + index * slots, 0

    def _wanted_behind(self, start: int) -> list[int]:
        first, end = (bisect_left(self._sorted, each) for each in (start, start + _LONGEST))
        return self._sorted[first:end]

    def _note(self, slot: int, place: Place) -> None:
        if slot in self._wanted:
            self.found.setdefault(slot, []).append(place)


def _part(whole: str, label: str, slot: int, offset: int, type_: StoredType) -> Place:
    name = label.lstrip("_")
    return Place(f"{whole}.{name}" if whole else name, slot, offset, type_)
