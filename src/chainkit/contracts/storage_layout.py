"""A contract's storage layout, and whether other code may take over the storage.

An upgrade replaces the code and leaves the storage. Values that the old code wrote must mean the
same to the new code. So variables may be added after the others, and nothing else may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Encoding = Literal["inplace", "mapping", "dynamic_array", "bytes"]
"""How a type lies in storage, in the compiler's words; ``bytes`` are strings, too."""


@dataclass(frozen=True, slots=True)
class StorageMember:
    """One variable in storage, where its namespace begins at slot 0."""

    label: str
    slot: int
    offset: int
    """Bytes from the low end of the slot."""
    size: int
    """Bytes."""
    type: str
    """The type in Solidity's words, structs with their members."""

    @property
    def place(self) -> str:
        """The variable's place in storage, for a person."""
        return f"slot {self.slot}, bytes {self.offset} to {self.offset + self.size - 1}"


Storage = Mapping[str, tuple[StorageMember, ...]]
"""By namespace (``erc7201:…``); the empty one is Solidity's own, from slot 0."""


@dataclass(frozen=True, slots=True)
class StorageChange:
    """One difference between two storage layouts."""

    words: str
    keeps_meaning: bool
    """Whether values that the old code wrote still mean the same: true for additions at the end."""


def compare_storage(before: Storage, after: Storage) -> tuple[StorageChange, ...]:
    """Return how two layouts differ, by namespace and slot; only additions at the end are safe.

    A new name for the same bytes counts as a change: only a person knows that it is the same.
    """
    changes = []
    for namespace in sorted(before.keys() | after.keys()):
        place = namespace or "storage from slot 0"
        old, new = before.get(namespace), after.get(namespace)
        if new is None:
            changes.append(StorageChange(f"{place}: removed", False))
        else:
            changes += _compare_members(place, old or (), new)
    return tuple(changes)


def _compare_members(
    place: str, before: tuple[StorageMember, ...], after: tuple[StorageMember, ...]
) -> list[StorageChange]:
    new = {(member.slot, member.offset): member for member in after}
    end = max(((member.slot, member.offset) for member in before), default=(-1, 0))
    changes = []
    for member in before:
        found = new.pop((member.slot, member.offset), None)
        if found is None:
            changes.append(StorageChange(f"{place}, {_member(member)}: removed", False))
        elif found != member:
            words = f"{place}, {_member(member)}: now {found.type} {found.label}"
            changes.append(StorageChange(words, False))
    for position, member in new.items():
        where = "added at the end" if position > end else "put between others"
        words = f"{place}, {_member(member)}: {where}"
        changes.append(StorageChange(words, position > end))
    return changes


def _member(member: StorageMember) -> str:
    return f"{member.place}: {member.type} {member.label}"


def parse_storage(content: Mapping[str, Any]) -> Storage:
    """Build a storage layout from the JSON that `tools/write_abis.py` wrote."""
    return {
        namespace: tuple(StorageMember(**member) for member in members)
        for namespace, members in content.items()
    }


@dataclass(frozen=True, slots=True)
class StoredType:
    """A type, as the compiler lays it out in storage."""

    label: str
    """In Solidity's words."""
    encoding: Encoding
    size: int
    """Bytes of the variable's own slot, not of the values of a mapping or a list."""
    members: Layout = ()
    """Members of a struct, which begins at slot 0."""
    key: str = ""
    """The key's type of a mapping, in Solidity's words."""
    element: StoredType | None = None
    """The type of a mapping's or an array's values."""


@dataclass(frozen=True, slots=True)
class StoredVariable:
    """A variable, or a member of a struct."""

    label: str
    slot: int
    """Slots from the first slot of the variable's namespace or struct."""
    offset: int
    """Bytes from the low end of the slot."""
    type: StoredType


Layout = tuple[StoredVariable, ...]
"""Variables in the order of their slots."""


def parse_layout(content: Mapping[str, Any]) -> Layout:
    """Build a layout from the compiler's ``storageLayout``; every type must be listed there."""
    return tuple(_variable(each, content["types"]) for each in content["storage"])


def _variable(content: Mapping[str, Any], types: Mapping[str, Any]) -> StoredVariable:
    type_ = _stored_type(types[content["type"]], types)
    return StoredVariable(content["label"], int(content["slot"]), int(content["offset"]), type_)


def _stored_type(content: Mapping[str, Any], types: Mapping[str, Any]) -> StoredType:
    element = content.get("value", content.get("base"))
    return StoredType(
        label=content["label"],
        encoding=content["encoding"],
        size=int(content["numberOfBytes"]),
        members=tuple(_variable(each, types) for each in content.get("members", ())),
        key=types[content["key"]]["label"] if "key" in content else "",
        element=None if element is None else _stored_type(types[element], types),
    )
