"""The slot arithmetic against the compiler: Safe's own sources, and a contract of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chainkit.chain.sending import wait_for_receipt
from chainkit.contracts.storage_layout import parse_layout
from chainkit.council.safe import known_versions
from chainkit.council.simulation.difference import StateDifference, decode_difference
from chainkit.council.simulation.keys import CandidateKeys
from chainkit.council.simulation.layouts import SAFE_LAYOUTS, SAFE_NONCE_SLOT, KnownAccount
from chainkit.council.simulation.safe_overrides import APPROVED_HASHES_SLOT
from chainkit.council.simulation.trace import Message, trace_difference
from localnet.anvil import Anvil
from localnet.deployment import PROJECT
from support.chains.chain import dev_address
from support.solidity import encode_call
from support.solidity_compiler import compile_contract, read_sources

PACKAGES = {"1.4.1": "safe-contracts", "1.5.0": "safe-smart-account"}
FOLDERS = ("base", "common", "external", "handler", "interfaces", "libraries")
SENDER = bytes.fromhex(dev_address(1)[2:])
THING = """
pragma solidity 0.8.28;
contract Thing {
    enum Kind { First, Second, Third }
    struct Item {
        uint128 amount; bool flag; Kind kind; address holder; string note; uint16[] parts;
    }
    int32 private _level;
    bytes4 public mark;
    mapping(uint256 => Item) private _items;
    mapping(address => mapping(bytes32 => uint256)) private _nested;
    Item[] private _list;
    function setLevel(int32 level, bytes4 to) external { _level = level; mark = to; }
    function setItem(uint256 key, uint128 amount, bool flag, uint8 kind, address holder,
        string calldata note, uint16[] calldata parts) external {
        _items[key] = Item(amount, flag, Kind(kind), holder, note, parts);
    }
    function setNested(address first, bytes32 second, uint256 value) external {
        _nested[first][second] = value;
    }
    function add(uint128 amount, string calldata note) external {
        uint16[] memory parts;
        _list.push(Item(amount, true, Kind.Third, msg.sender, note, parts));
    }
}
"""
SIGNATURES = {
    "setLevel": "setLevel(int32,bytes4)",
    "setItem": "setItem(uint256,uint128,bool,uint8,address,string,uint16[])",
    "setNested": "setNested(address,bytes32,uint256)",
    "add": "add(uint128,string)",
}

addresses = st.binary(min_size=20, max_size=20)
notes = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=90)
amounts = st.integers(1, 2**128 - 1)


def sources_of(version: str) -> dict[str, str]:
    root = PROJECT / "node_modules" / "@safe-global" / PACKAGES[version] / "contracts"
    return read_sources(Path(root), *FOLDERS)


@pytest.mark.parametrize("version", PACKAGES)
def test_safe_layout__against_its_own_sources__is_the_compilers(version: str) -> None:
    compiled = parse_layout(
        compile_contract(sources_of(version), "Safe.sol", "Safe")["storageLayout"]
    )

    assert SAFE_LAYOUTS[version][: len(compiled)] == compiled
    slots = {variable.label: variable.slot for variable in compiled}
    assert (slots["nonce"], slots["approvedHashes"]) == (SAFE_NONCE_SLOT, APPROVED_HASHES_SLOT)


@pytest.mark.parametrize("version", PACKAGES)
def test_safe_layout__slots_that_are_named__stand_in_its_own_sources(version: str) -> None:
    text = "".join(sources_of(version).values())
    named = {variable.label: variable.slot for variable in SAFE_LAYOUTS[version][9:]}

    assert all(f"{slot:064x}" in text for slot in named.values())
    assert ("moduleGuard" in named) == ("MODULE_GUARD_STORAGE_SLOT" in text)
    assert {"guard", "fallbackHandler"} <= named.keys()


def test_safe_layouts__of_all_known_releases__are_there() -> None:
    assert set(SAFE_LAYOUTS) == set(known_versions())


@dataclass(frozen=True)
class Thing:
    """A contract with variables of every kind, on a chain."""

    anvil: Anvil
    address: bytes
    account: KnownAccount

    def simulated(self, keys: CandidateKeys, function: str, *arguments: Any) -> StateDifference:
        """Trace and decode a call, send it, and see that the chain holds what was traced."""
        endpoint, data = self.anvil.endpoint, encode_call(SIGNATURES[function], *arguments)
        block = endpoint.head().reference
        raw = trace_difference(endpoint, block, Message(SENDER, self.address, data), {})
        difference = decode_difference(
            raw, {self.address: self.account}, keys, self.word, SENDER, bytes(20)
        )
        self.send(data)
        assert {slot: self.word(*slot) for slot in raw.storage} == raw.words
        return difference

    def word(self, address: bytes, slot: int) -> int:
        place = ("0x" + address.hex(), f"0x{slot:064x}")
        return int(self.anvil.request("eth_getStorageAt", *place, "latest"), 16)

    def send(self, data: bytes) -> None:
        call = {"from": dev_address(1), "to": "0x" + self.address.hex(), "data": "0x" + data.hex()}
        sent = self.anvil.request("eth_sendTransaction", call)
        assert wait_for_receipt(self.anvil.endpoint, bytes.fromhex(sent[2:])).succeeded


@pytest.fixture(scope="module")
def thing() -> Iterator[Thing]:
    compiled = compile_contract({"Thing.sol": THING}, "Thing.sol", "Thing")
    account = KnownAccount("Thing", parse_layout(compiled["storageLayout"]))
    with Anvil() as anvil:
        code = "0x" + compiled["evm"]["bytecode"]["object"]
        sent = anvil.request("eth_sendTransaction", {"from": dev_address(1), "data": code})
        wait_for_receipt(anvil.endpoint, bytes.fromhex(sent[2:]))
        receipt = anvil.request("eth_getTransactionReceipt", sent)
        yield Thing(anvil, bytes.fromhex(receipt["contractAddress"][2:]), account)


def after(difference: StateDifference) -> dict[str, str]:
    difference.require_decoded()
    return {change.label: change.after for change in difference.changes}


several = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@several
@given(
    st.integers(0, 2**256 - 1), amounts, st.integers(1, 2), addresses, notes,
    st.lists(st.integers(1, 2**16 - 1), max_size=40).map(tuple),
)  # fmt: skip
def test_decode__struct_in_a_mapping__is_what_was_set(
    thing: Thing, key: int, amount: int, kind: int, holder: bytes, note: str, parts: tuple[int, ...]
) -> None:
    snapshot = thing.anvil.request("evm_snapshot")
    keys = CandidateKeys(numbers=frozenset({key}))

    difference = thing.simulated(keys, "setItem", key, amount, True, kind, holder, note, parts)

    shown = note.replace("\\", "\\\\")
    expected = {
        f"items[{key}].amount": str(amount),
        f"items[{key}].flag": "true",
        f"items[{key}].kind": str(kind),
        f"items[{key}].holder": to_checksum_address(holder),
        f"items[{key}].note": f'"{shown}"',
        f"items[{key}].parts.length": str(len(parts)),
        **{f"items[{key}].parts[{index}]": str(part) for index, part in enumerate(parts)},
    }
    nothing = [f"items[{key}].note"] * (not note) + [f"items[{key}].holder"] * (not any(holder))
    nothing += [f"items[{key}].parts.length"] * (not parts)
    assert after(difference) == {
        label: value for label, value in expected.items() if label not in nothing
    }
    thing.anvil.request("evm_revert", snapshot)


@several
@given(addresses, st.binary(min_size=32, max_size=32), st.integers(1, 2**256 - 1))
def test_decode__mapping_in_a_mapping__is_what_was_set(
    thing: Thing, first: bytes, second: bytes, value: int
) -> None:
    snapshot = thing.anvil.request("evm_snapshot")
    keys = CandidateKeys(addresses=frozenset({first}), words=frozenset({second}))

    difference = thing.simulated(keys, "setNested", first, second, value)

    (change,) = difference.changes
    difference.require_decoded()
    assert change.label.startswith(f"nested[{to_checksum_address(first)}][")
    assert (change.before, change.after) == ("0", str(value))
    thing.anvil.request("evm_revert", snapshot)


@several
@given(st.integers(-(2**31), 2**31 - 1), st.binary(min_size=4, max_size=4))
def test_decode__small_variables_of_one_slot__are_what_was_set(
    thing: Thing, level: int, mark: bytes
) -> None:
    before = thing.word(thing.address, 0)

    found = after(thing.simulated(CandidateKeys(), "setLevel", level, mark))

    now = thing.word(thing.address, 0)
    assert found.get("level", str(level)) == str(level)
    assert found.get("mark", f"0x{mark.hex()}") in (f"0x{mark.hex()}", "(zero)")
    assert bool(found) == (before != now)


@several
@given(amounts, notes)
def test_decode__struct_at_the_end_of_a_list__is_what_was_added(
    thing: Thing, amount: int, note: str
) -> None:
    count = thing.word(thing.address, 3)

    found = after(thing.simulated(CandidateKeys(), "add", amount, note))

    assert found["list.length"] == str(count + 1)
    assert found[f"list[{count}].amount"] == str(amount)
    assert found[f"list[{count}].holder"] == dev_address(1)
    assert all(label.startswith(("list.length", f"list[{count}].")) for label in found)


@several
@given(notes, notes)
def test_decode__text_replaced_by_another__is_told_whole(
    thing: Thing, first: str, second: str
) -> None:
    snapshot = thing.anvil.request("evm_snapshot")
    keys, rest = CandidateKeys(numbers=frozenset({1})), (1, 1, True, 1, SENDER)
    thing.simulated(keys, "setItem", *rest, first, ())

    difference = thing.simulated(keys, "setItem", *rest, second, ())

    difference.require_decoded()
    shown = [
        '"' + text.replace("\\", "\\\\") + '"' if text else "(none)" for text in (first, second)
    ]
    assert [str(change) for change in difference.changes] == (
        [f"Thing items[1].note: {shown[0]} -> {shown[1]}"] * (first != second)
    )
    thing.anvil.request("evm_revert", snapshot)
