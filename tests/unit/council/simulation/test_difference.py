from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.contracts.storage_layout import Layout, StoredType, StoredVariable
from chainkit.council.simulation.difference import SlotChange, StateDifference, decode_difference
from chainkit.council.simulation.keys import CandidateKeys
from chainkit.council.simulation.layouts import ADDRESS, UINT256, KnownAccount
from chainkit.council.simulation.slots import data_slot
from chainkit.council.simulation.trace import AccountChange, AccountField, RawDifference
from chainkit.council.simulation.values import LONGEST_TEXT, render_value
from chainkit.errors import UndecodedState

CONTRACT, SENDER, COINBASE, STRANGER = (bytes([number]) * 20 for number in range(1, 5))
NAME: Final = "Thing"
BOOL = StoredType("bool", "inplace", 1)
STRING, BYTES = StoredType("string", "bytes", 32), StoredType("bytes", "bytes", 32)
WORD = (1 << 256) - 1


def variable(type_: StoredType, label: str = "_it", slot: int = 3, offset: int = 0) -> Layout:
    return (StoredVariable(label, slot, offset, type_),)


def decoded(
    layout: Layout,
    storage: dict[int, tuple[int, int]],
    unchanged: dict[int, int] | None = None,
    keys: CandidateKeys | None = None,
    accounts: frozenset[AccountChange] = frozenset(),
) -> StateDifference:
    raw = RawDifference({(CONTRACT, slot): change for slot, change in storage.items()}, accounts)
    return decode_difference(
        raw,
        {CONTRACT: KnownAccount(NAME, layout)},
        keys or CandidateKeys(),
        lambda address, slot: (unchanged or {})[slot],
        SENDER,
        COINBASE,
    )


def lines(difference: StateDifference) -> list[str]:
    return [str(change) for change in difference.changes]


def stored(text: bytes, slot: int = 3) -> dict[int, int]:
    """Lay text out as Solidity's documentation says."""
    if len(text) < 32:
        return {slot: int.from_bytes(text.ljust(31, b"\0") + bytes([2 * len(text)]), "big")}
    parts = [text[start : start + 32].ljust(32, b"\0") for start in range(0, len(text), 32)]
    words = {data_slot(slot) + i: int.from_bytes(part, "big") for i, part in enumerate(parts)}
    return {slot: 2 * len(text) + 1} | words


def change_of(before: bytes, after: bytes) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
    """Return what differs between two texts, and what of the new one does not."""
    old, new = stored(before), stored(after)
    both = {slot: (old.get(slot, 0), new.get(slot, 0)) for slot in old | new}
    changed = {slot: change for slot, change in both.items() if change[0] != change[1]}
    return changed, {slot: change[0] for slot, change in both.items() if slot not in changed}


def test_decode__change__has_its_parts_by_name() -> None:
    difference = decoded(variable(UINT256), {3: (1, 2)})

    assert difference.changes == (SlotChange(CONTRACT, NAME, 3, "it", "1", "2"),)
    assert str(difference.changes[0]) == "Thing it: 1 -> 2"
    difference.require_decoded()


def test_decode__variables_of_one_slot__only_those_that_change_are_told() -> None:
    layout = (*variable(ADDRESS, "first"), *variable(BOOL, "second", offset=20))
    first = int.from_bytes(STRANGER, "big")

    difference = decoded(layout, {3: (first, first | 1 << 160)})

    assert lines(difference) == ["Thing second: false -> true"]
    assert difference.undecoded == ()


slot_words = st.builds(
    lambda first, second, rest: first | second << 160 | rest << 168,
    st.integers(0, 2),
    st.integers(0, 3),
    st.sampled_from([0, 1, 2**88 - 1]),
)


@given(slot_words, slot_words)
def test_decode__any_change_of_a_slot__is_told_or_undecoded(before: int, after: int) -> None:
    layout = (*variable(ADDRESS, "first"), *variable(BOOL, "second", offset=20))
    changed = {3: (before, after)} if before != after else {}

    difference = decoded(layout, changed)

    changes = before ^ after
    flags = [word >> 160 & 0xFF for word in (before, after)]
    assert any("first" in line for line in lines(difference)) == bool(changes & (1 << 160) - 1)
    assert any("second" in line for line in lines(difference)) == (sorted(flags) == [0, 1])
    beyond = changes >> 168 or (flags[0] != flags[1] and max(flags) > 1)
    assert bool(difference.undecoded) == bool(beyond)


@pytest.mark.parametrize(
    ("label", "size", "value", "words"),
    [
        ("bool", 1, b"\1", "true"),
        ("bool", 1, b"\0", "false"),
        ("bool", 1, b"\2", None),
        ("uint32", 4, b"\xff\xff\xff\xff", "4294967295"),
        ("int8", 1, b"\xff", "-1"),
        ("int256", 32, b"\x80" + bytes(31), str(-(2**255))),
        ("enum Kind", 1, b"\3", "3"),
        ("address", 20, b"\x5a" * 20, "0x5a5A5a5a5A5a5a5a5a5A5a5A5A5a5a5A5A5A5A5A"),
        ("address", 20, bytes(20), "(none)"),
        ("address payable", 20, bytes(20), "(none)"),
        ("contract IThing", 20, bytes(20), "(none)"),
        ("bytes4", 4, b"\1\2\3\4", "0x01020304"),
        ("bytes32", 32, bytes(32), "(zero)"),
        ("bytes32", 32, bytes(12) + b"\7" * 20, "0x" + "00" * 12 + "07" * 20),
        ("struct Other", 32, bytes(32), None),
        ("Price", 32, bytes(32), None),
    ],
)
def test_render__each_type__is_in_its_words(
    label: str, size: int, value: bytes, words: str | None
) -> None:
    assert render_value(StoredType(label, "inplace", size), value, CandidateKeys()) == words


def test_render__bytes_that_are_a_known_address__are_written_as_one() -> None:
    keys = CandidateKeys.of_addresses([STRANGER])
    type_ = StoredType("bytes32", "inplace", 32)

    assert render_value(type_, bytes(12) + STRANGER, keys) == "0x" + "04" * 20
    assert render_value(type_, b"\1" + bytes(11) + STRANGER, keys) == (
        "0x01" + "00" * 11 + "04" * 20
    )


texts = st.binary(max_size=100)


@given(texts, texts)
def test_decode__text_of_any_length_becomes_another__is_told_whole(
    before: bytes, after: bytes
) -> None:
    changed, unchanged = change_of(before, after)

    difference = decoded(variable(BYTES), changed, unchanged)

    words = [f"0x{text.hex()}" if text else "(none)" for text in (before, after)]
    assert lines(difference) == ([f"Thing it: {words[0]} -> {words[1]}"] * (before != after))
    assert difference.undecoded == ()


def test_decode__string__is_in_characters_that_any_terminal_shows() -> None:
    url = "https://a.example/\x1b[2J\u202e" + "x" * 40
    changed, unchanged = change_of(b"", url.encode() + b"\xff")

    (line,) = lines(decoded(variable(STRING), changed, unchanged))

    shown = r"https://a.example/\x1b[2J\u202e" + "x" * 40 + r"\udcff"
    assert line == f'Thing it: (none) -> "{shown}"'


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(2 * 32, id="too long for a short one"),
        pytest.param(2 * 31 + 1, id="too short for a long one"),
        pytest.param(2 * (LONGEST_TEXT + 1) + 1, id="longer than any"),
        pytest.param(WORD, id="as long as can be"),
        pytest.param(int.from_bytes(b"abcX".ljust(31, b"\0") + b"\x06", "big"), id="more behind"),
    ],
)
def test_decode__slot_of_no_valid_text__is_undecoded(head: int) -> None:
    difference = decoded(variable(STRING), {3: (0, head)})

    assert difference.changes == ()
    assert len(difference.undecoded) == 1


def test_decode__bytes_behind_a_long_text__are_undecoded() -> None:
    changed, unchanged = change_of(b"", b"x" * 40)
    second = data_slot(3) + 1
    changed[second] = (0, changed[second][1] | 1)

    difference = decoded(variable(STRING), changed, unchanged)

    assert difference.changes == ()
    assert len(difference.undecoded) == 3


def test_decode__slot_behind_the_end_of_a_text__is_undecoded() -> None:
    changed, unchanged = change_of(b"", b"x" * 40)
    changed[data_slot(3) + 2] = (0, 5)

    difference = decoded(variable(STRING), changed, unchanged)

    assert len(difference.changes) == 1
    (line,) = difference.undecoded
    assert f"slot 0x{data_slot(3) + 2:064x}" in line


def test_decode__slot_without_a_name__tells_place_and_words() -> None:
    difference = decoded(variable(UINT256), {9: (1, 2)})

    assert difference.undecoded == (
        "Thing 0x0101010101010101010101010101010101010101 "
        f"slot 0x{9:064x}: 0x{1:064x} -> 0x{2:064x}",
    )


def test_require_decoded__several_without_a_name__lists_all() -> None:
    difference = decoded(variable(UINT256), {9: (1, 2), 8: (1, 2), 3: (1, 2)})

    with pytest.raises(UndecodedState) as caught:
        difference.require_decoded()

    assert caught.value.got == "; ".join(difference.undecoded)
    assert [f"slot 0x{slot:064x}" in str(caught.value) for slot in (3, 8, 9)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("address", "field", "expected"),
    [
        (SENDER, "nonce", True),
        (SENDER, "balance", True),
        (SENDER, "code", False),
        (SENDER, "existence", False),
        (COINBASE, "balance", True),
        (COINBASE, "nonce", False),
        (COINBASE, "code", False),
        (CONTRACT, "balance", False),
        (CONTRACT, "nonce", False),
        (STRANGER, "balance", False),
        (STRANGER, "nonce", False),
    ],
)
def test_decode__change_of_an_account__is_passed_over_for_sender_and_fees_alone(
    address: bytes, field: AccountField, expected: bool
) -> None:
    change = AccountChange(address, field, 0, 1)

    difference = decoded((), {}, accounts=frozenset({change}))

    place = "0x" + address.hex()
    assert difference.undecoded == (() if expected else (f"account {place} {field}: 0 -> 1",))


def test_decode__new_code__is_told_by_its_size() -> None:
    change = AccountChange(STRANGER, "code", b"", b"\x60" * 5)

    (line,) = decoded((), {}, accounts=frozenset({change})).undecoded

    assert line.endswith("code: 0 bytes -> 5 bytes")


def test_decode__storage_of_the_sender__is_not_passed_over() -> None:
    raw = RawDifference({(SENDER, 1): (0, 1)})

    difference = decode_difference(
        raw, {}, CandidateKeys(), lambda address, slot: 0, SENDER, COINBASE
    )

    assert difference.undecoded[0].startswith("unknown contract 0x0202020202020202")
