"""A transaction's changes, slot by slot and in words; changes without words are separate.

Only the changes of every transaction are ignored: the nonce and the balance of the account that
sends the transaction, and the balance of the block's coinbase. Any other change without a name is
an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from eth_utils.address import to_checksum_address

from chainkit.council.simulation.keys import CandidateKeys
from chainkit.council.simulation.layouts import Accounts, KnownAccount
from chainkit.council.simulation.slots import SLOT_BYTES, Place, SlotNames, data_slot, name_slots
from chainkit.council.simulation.trace import AccountChange, RawDifference, Slot
from chainkit.council.simulation.values import read_text, render_value
from chainkit.errors import UndecodedState

ReadWord = Callable[[bytes, int], int]
"""Reads a slot of an account on the block of the difference."""

_ALWAYS_CHANGED: Final = ("balance", "nonce")


@dataclass(frozen=True, slots=True)
class SlotChange:
    """A variable, or a member of one, that changes."""

    address: bytes
    """20 bytes: the contract of the slot."""
    contract: str
    slot: int
    """The variable's place; a long text continues in other slots."""
    label: str
    """As in Solidity: ``nodes[300].isHealthy``."""
    before: str
    after: str

    def __str__(self) -> str:
        """The change in one line, safe to print; a long text makes it long."""
        return f"{self.contract} {self.label}: {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class StateDifference:
    """All that a transaction changes."""

    changes: tuple[SlotChange, ...]
    """By contract; within one, plain variables before those that mappings hold."""
    undecoded: tuple[str, ...]
    """Changes that cannot be named, a line each, safe to print."""

    def require_decoded(self) -> None:
        """Raise UndecodedState that lists all that cannot be named, if there is any."""
        if self.undecoded:
            expected, got = "only changes that can be named", "; ".join(self.undecoded)
            raise UndecodedState("state difference", expected, got)


def decode_difference(
    raw: RawDifference,
    accounts: Accounts,
    keys: CandidateKeys,
    read_word: ReadWord,
    sender: bytes,
    coinbase: bytes,
) -> StateDifference:
    """Describe the changes of a traced transaction of ``sender``; addresses are 20 bytes.

    ``read_word`` gives the part of a text that does not change.
    """
    changes: list[SlotChange] = []
    undecoded = [
        _account_words(change)
        for change in sorted(raw.accounts, key=lambda one: (one.address, one.field))
        if not is_expected(change, sender, coinbase)
    ]
    for address, account in accounts.items():
        slots = [slot for owner, slot in raw.storage if owner == address]
        names = name_slots(account.layout, keys, slots)
        decoder = _Decoder(raw, address, account, keys, read_word)
        changes += decoder.changes(names)
        undecoded += decoder.undecoded(slots)
    strangers = sorted(slot for slot in raw.storage if slot[0] not in accounts)
    undecoded += [_slot_words(raw, "unknown contract", slot) for slot in strangers]
    return StateDifference(tuple(changes), tuple(undecoded))


def is_expected(change: AccountChange, sender: bytes, coinbase: bytes) -> bool:
    """Whether any transaction of the sender makes such a change, whatever its calls are."""
    if change.address == sender:
        return change.field in _ALWAYS_CHANGED
    return change.address == coinbase and change.field == "balance"


class _Decoder:
    """Decodes the changed slots of one contract, and records which bits have a name."""

    def __init__(
        self,
        raw: RawDifference,
        address: bytes,
        account: KnownAccount,
        keys: CandidateKeys,
        read_word: ReadWord,
    ) -> None:
        self._raw = raw
        self._address = address
        self._account = account
        self._keys = keys
        self._read_word = read_word
        self._named: dict[int, int] = {}
        """Bits of each slot that a named change covers."""

    def changes(self, names: SlotNames) -> Iterator[SlotChange]:
        """Yield what changes, once for each variable."""
        places = dict.fromkeys(place for found in names.values() for place in found)
        for place in places:
            is_text = place.type.encoding == "bytes"
            words = self._text(place, names) if is_text else self._value(place)
            if words is not None and words[0] != words[1]:
                yield SlotChange(self._address, self._account.name, place.slot, place.label, *words)

    def undecoded(self, slots: Collection[int]) -> Iterator[str]:
        """Yield the slots of which a changed bit was not named."""
        for slot in sorted(slots):
            before, after = self._raw.storage[self._address, slot]
            if (before ^ after) & ~self._named.get(slot, 0):
                yield _slot_words(self._raw, self._account.name, (self._address, slot))

    def _value(self, place: Place) -> tuple[str, str] | None:
        size, shift = place.type.size, 8 * place.offset
        mask = (1 << 8 * size) - 1
        parts = [(word >> shift) & mask for word in self._raw.storage[self._address, place.slot]]
        before, after = (
            render_value(place.type, part.to_bytes(size, "big"), self._keys) for part in parts
        )
        if before is None or after is None:
            return None
        self._name(place.slot, mask << shift)
        return before, after

    def _text(self, place: Place, names: SlotNames) -> tuple[str, str] | None:
        start = data_slot(place.slot)
        before, after = (
            read_text(place.type, partial(self._word, side), place.slot, start) for side in (0, 1)
        )
        if before is None or after is None:
            return None
        end = start + max(before.slots, after.slots)
        for slot, places in names.items():
            if place in places and (slot == place.slot or slot < end):
                self._name(slot, (1 << 8 * SLOT_BYTES) - 1)
        return before.words, after.words

    def _word(self, side: int, slot: int) -> int:
        """Return what a slot holds before (0) or after (1)."""
        changed = self._raw.storage.get((self._address, slot))
        return self._read_word(self._address, slot) if changed is None else changed[side]

    def _name(self, slot: int, bits: int) -> None:
        self._named[slot] = self._named.get(slot, 0) | bits


def _slot_words(raw: RawDifference, name: str, slot: Slot) -> str:
    before, after = raw.storage[slot]
    place = f"{name} {to_checksum_address(slot[0])} slot 0x{slot[1]:064x}"
    return f"{place}: 0x{before:064x} -> 0x{after:064x}"


def _account_words(change: AccountChange) -> str:
    before, after = (
        f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
        for value in (change.before, change.after)
    )
    return f"account {to_checksum_address(change.address)} {change.field}: {before} -> {after}"
