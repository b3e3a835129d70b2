from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.simulation.keys import CandidateKeys, keys_of_arguments, read_candidate_keys
from chainkit.council.simulation.layouts import known_accounts
from chainkit.signatures import SigningKey, address_of
from chainkit.types import BlockReference
from support.council.fake_registry import RECORD
from support.endpoints.fake_endpoint import FakeProvider

ONE, TWO = "0x" + "11" * 20, "0x" + "22" * 20
KEY = SigningKey(bytes(31) + b"\1").public_key
BLOCK = BlockReference(1, b"\xbb" * 32)


def call(contract: str, function: str, *arguments: Any) -> Call:
    return Call.make(RECORD, contract, function, *arguments)


def answering(**answers: Any) -> tuple[ContractState, list[str]]:
    """Return a state that answers each function with a value, and the list of what was asked."""
    asked: list[str] = []

    def answer(request: dict[str, str], block: object) -> str:
        for name in ("NodeRegistry", "GroupMessages"):
            for function, (types, value) in answers.items():
                interface = shipped_interface(name)
                try:
                    selector = interface.selector(function)
                except KeyError:
                    continue
                if request["data"].startswith("0x" + selector.hex()):
                    asked.append(function)
                    return "0x" + encode([types], [value]).hex()
        raise AssertionError(request)

    return ContractState(FakeProvider({"eth_call": answer}).endpoint(), BLOCK), asked


def test_arguments__of_a_new_node__give_holder_and_the_address_of_the_key() -> None:
    keys = keys_of_arguments(call("NodeRegistry", "addNode", ONE, KEY, "https://a.example"))

    assert keys.addresses == {bytes.fromhex(ONE[2:]), bytes.fromhex(address_of(KEY)[2:])}
    assert keys.numbers == keys.words == frozenset()


def test_arguments__of_a_transfer__give_both_holders_and_the_node() -> None:
    keys = keys_of_arguments(call("NodeRegistry", "transferFrom", ONE, TWO, 300))

    assert keys == CandidateKeys(
        frozenset({300}), frozenset({b"\x11" * 20, b"\x22" * 20}), frozenset()
    )


def test_arguments__of_a_role__give_role_and_account() -> None:
    keys = keys_of_arguments(call("GroupMessages", "grantRole", b"\x52" * 32, ONE))

    assert (keys.words, keys.addresses) == ({b"\x52" * 32}, {b"\x11" * 20})


def test_arguments__none__give_no_keys() -> None:
    assert keys_of_arguments(call("GroupMessages", "pause")) == CandidateKeys()


def test_arguments__text_in_the_form_of_an_address__does_no_harm() -> None:
    keys = keys_of_arguments(call("NodeRegistry", "addNode", ONE, KEY, TWO))

    assert len(keys.addresses) == 3


def test_read__new_nodes__gives_the_ids_that_there_are_and_that_will_be() -> None:
    state, _ = answering(nodeCount=("uint256", 2))
    added = call("NodeRegistry", "addNode", ONE, KEY, "https://a.example")

    keys = read_candidate_keys(state, [added, added])

    assert keys.numbers == {100, 200, 300, 400}


@pytest.mark.parametrize("count", [10_001, 42_949_672])
def test_read__many_nodes__keeps_to_the_newest_and_those_named(count: int) -> None:
    state, _ = answering(nodeCount=("uint256", count))

    keys = read_candidate_keys(state, [call("NodeRegistry", "updateHealth", 100, True)])

    assert {100, 100 * count} <= keys.numbers
    assert len(keys.numbers) <= 10_004


def test_read__role__gives_its_members_as_one_of_them_may_move() -> None:
    state, asked = answering(getRoleMembers=("address[]", [ONE, TWO]))

    keys = read_candidate_keys(state, [call("GroupMessages", "revokeRole", b"\x52" * 32, ONE)])

    assert keys.addresses == {b"\x11" * 20, b"\x22" * 20}
    assert keys.words == {b"\x52" * 32, bytes(32)}
    assert asked == ["getRoleMembers"]


def test_read__calls_without_nodes_or_roles__asks_nothing() -> None:
    state, asked = answering()

    keys = read_candidate_keys(state, [call("GroupMessages", "pause")])

    assert keys == CandidateKeys(words=frozenset({bytes(32)}))
    assert asked == []


@pytest.mark.parametrize(
    ("key_type", "shown"),
    [
        ("uint256", ["7", "100"]),
        ("uint32", ["7", "100"]),
        ("address", ["0x" + "11" * 20]),
        ("contract IThing", ["0x" + "11" * 20]),
        ("bytes32", ["DEFAULT_ADMIN_ROLE", "0x" + "52" * 32, "0x" + "11" * 20]),
        ("string", []),
        ("bool", []),
    ],
)
def test_of_type__each_type__has_its_keys_in_order(key_type: str, shown: list[str]) -> None:
    keys = CandidateKeys(
        frozenset({100, 7}), frozenset({b"\x11" * 20}), frozenset({b"\x52" * 32, bytes(32)})
    )

    found = list(keys.of_type(key_type))

    assert [words for _, words in found] == shown
    assert all(len(key) == 32 for key, _ in found)


def test_known_accounts__of_a_record__are_all_its_contracts() -> None:
    accounts = known_accounts(RECORD)

    assert {account.name for account in accounts.values()} == {
        "GroupMessages",
        "IdentityUpdates",
        "NodeRegistry",
        "OriginatorSequence",
    }
    assert all(account.layout for account in accounts.values())
