from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from chainkit.contracts.artifacts import CONTRACTS, artifact
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import erc1967_slot, erc7201_slot
from chainkit.contracts.storage_layout import Layout, parse_layout
from chainkit.council.simulation.keys import CandidateKeys
from chainkit.council.simulation.layouts import contract_layout
from chainkit.council.simulation.slots import Place, SlotNames, name_slots

REGISTRY, LOG = contract_layout("NodeRegistry"), contract_layout("GroupMessages")
numbers = st.integers(0, 2**256 - 1)
addresses = st.binary(min_size=20, max_size=20).filter(any)
roles = st.binary(min_size=32, max_size=32)


def at(kind: str, key: object, slot: int) -> int:
    """Where Solidity's documentation says that a mapping keeps a key's value."""
    return int.from_bytes(keccak(encode([kind, "uint256"], [key, slot])), "big")


def list_at(slot: int) -> int:
    return int.from_bytes(keccak(encode(["uint256"], [slot])), "big")


def labels(names: SlotNames, slot: int) -> list[str]:
    return [place.label for place in names.get(slot, ())]


def named(layout: Layout, slot: int, keys: CandidateKeys | None = None) -> list[str]:
    return labels(name_slots(layout, keys or CandidateKeys(), [slot]), slot)


def type_(label: str, size: int = 32, encoding: str = "inplace", **more: Any) -> dict[str, Any]:
    return {"label": label, "numberOfBytes": str(size), "encoding": encoding, **more}


TYPES = {
    "u8": type_("uint8", 1),
    "u128": type_("uint128", 16),
    "u136": type_("uint136", 17),
    "u256": type_("uint256"),
    "list8": type_("uint8[]", encoding="dynamic_array", base="u8"),
    "list128": type_("uint128[]", encoding="dynamic_array", base="u128"),
    "list136": type_("uint136[]", encoding="dynamic_array", base="u136"),
    "pair": type_(
        "struct Pair",
        64,
        members=[
            {"label": "_first", "slot": "0", "offset": 0, "type": "u128"},
            {"label": "second", "slot": "0", "offset": 16, "type": "u8"},
            {"label": "third", "slot": "1", "offset": 0, "type": "u256"},
        ],
    ),
    "pairs": type_("struct Pair[]", encoding="dynamic_array", base="pair"),
    "fixed": type_("uint256[3]", 96, base="u256"),
    "text": type_("string", encoding="bytes"),
    "by_text": type_("mapping(string => uint256)", encoding="mapping", key="text", value="u256"),
    "by_number": type_("mapping(uint8 => Pair[])", encoding="mapping", key="u8", value="pairs"),
}


def layout_of(type_name: str) -> Layout:
    variable = {"label": "_all", "slot": "4", "offset": 0, "type": type_name}
    return parse_layout({"storage": [variable], "types": TYPES})


@given(numbers)
def test_name__member_of_a_struct_in_a_mapping__is_at_the_key(node: int) -> None:
    keys = CandidateKeys(numbers=frozenset({node}))
    start = at("uint256", node, 8)

    names = name_slots(REGISTRY, keys, [start, start + 1, start + 2])

    assert labels(names, start) == [f"nodes[{node}].signingKeyPub"]
    assert labels(names, start + 1) == [f"nodes[{node}].httpAddress"]
    assert labels(names, start + 2) == [f"nodes[{node}].isHealthy"]
    assert labels(names, start + 3) == []


@given(addresses, addresses)
def test_name__mapping_of_a_mapping__takes_both_keys(owner: bytes, operator: bytes) -> None:
    slot = at("address", operator, at("address", owner, 5))
    keys = CandidateKeys.of_addresses([owner, operator])

    shown = [to_checksum_address(address) for address in (owner, operator)]
    assert named(REGISTRY, slot, keys) == [f"operatorApprovals[{shown[0]}][{shown[1]}]"]


@given(roles, addresses)
def test_name__role_of_an_account__is_in_its_namespace(role: bytes, account: bytes) -> None:
    base = erc7201_slot("openzeppelin.storage.AccessControl")
    slot = at("address", account, at("bytes32", role, base))
    keys = CandidateKeys(addresses=frozenset({account}), words=frozenset({role}))

    shown = "DEFAULT_ADMIN_ROLE" if role == bytes(32) else f"0x{role.hex()}"
    assert named(LOG, slot, keys) == [f"roles[{shown}].hasRole[{to_checksum_address(account)}]"]
    assert named(LOG, at("bytes32", role, base) + 1, keys) == [f"roles[{shown}].adminRole"]


@given(addresses)
def test_name__address_in_a_set__is_a_key_of_32_bytes(account: bytes) -> None:
    base = erc7201_slot("openzeppelin.storage.AccessControlEnumerable")
    members = at("bytes32", bytes(32), base)
    keys = CandidateKeys(addresses=frozenset({account}), words=frozenset({bytes(32)}))

    slot = at("bytes32", account.rjust(32, b"\0"), members + 1)

    label = f"roleMembers[DEFAULT_ADMIN_ROLE].inner.positions[{to_checksum_address(account)}]"
    assert named(LOG, slot, keys) == [label]


@given(st.integers(0, 2**32 - 1))
def test_name__element_of_a_list__is_known_without_its_length(index: int) -> None:
    base = erc7201_slot("openzeppelin.storage.AccessControlEnumerable")
    members = at("bytes32", bytes(32), base)
    keys = CandidateKeys(words=frozenset({bytes(32)}))

    found = named(LOG, list_at(members) + index, keys)

    assert found == [f"roleMembers[DEFAULT_ADMIN_ROLE].inner.values[{index}]"]
    length = named(LOG, members, keys)
    assert length == ["roleMembers[DEFAULT_ADMIN_ROLE].inner.values.length"]


@pytest.mark.parametrize("distance", [-1, 2**32])
def test_name__slot_around_a_list__is_none_of_it(distance: int) -> None:
    assert named(layout_of("list8"), list_at(4) + distance) == []


@given(st.integers(0, 1000))
def test_name__small_elements__share_a_slot(part: int) -> None:
    slot = list_at(4) + part
    places = name_slots(layout_of("list8"), CandidateKeys(), [slot])[slot]

    assert [(place.label, place.offset) for place in places] == [
        (f"all[{32 * part + index}]", index) for index in range(32)
    ]


def test_name__elements_of_half_a_slot__share_it_by_two() -> None:
    slot = list_at(4) + 3
    places = name_slots(layout_of("list128"), CandidateKeys(), [slot])[slot]

    assert [(place.label, place.offset) for place in places] == [("all[6]", 0), ("all[7]", 16)]


def test_name__elements_of_more_than_half_a_slot__have_one_each() -> None:
    slot = list_at(4) + 3
    (place,) = name_slots(layout_of("list136"), CandidateKeys(), [slot])[slot]

    assert (place.label, place.offset, place.type.size) == ("all[3]", 0, 17)


def test_name__list_of_structs__tells_members_of_each() -> None:
    start = list_at(4)
    wanted = [start + 2, start + 3, start + 5]

    names = name_slots(layout_of("pairs"), CandidateKeys(), wanted)

    assert {slot - start: labels(names, slot) for slot in wanted} == {
        2: ["all[1].first", "all[1].second"],
        3: ["all[1].third"],
        5: ["all[2].third"],
    }


def test_name__list_in_a_mapping__is_behind_the_hash_of_its_slot() -> None:
    keys = CandidateKeys(numbers=frozenset({9}))
    slot = at("uint8", 9, 4)

    assert named(layout_of("by_number"), slot, keys) == ["all[9].length"]
    assert named(layout_of("by_number"), list_at(slot) + 1, keys) == ["all[9][0].third"]


@pytest.mark.parametrize("type_name", ["fixed", "by_text"])
def test_name__kinds_that_no_contract_has__stay_without_a_name(type_name: str) -> None:
    keys = CandidateKeys(numbers=frozenset({1}), words=frozenset({bytes(32)}))

    assert [named(layout_of(type_name), slot, keys) for slot in (4, 5, 6)] == [[], [], []]


def test_name__long_text__owns_the_slots_of_its_characters() -> None:
    text, start = layout_of("text"), list_at(4)

    names = name_slots(text, CandidateKeys(), [4, start, start + 16])

    place = Place("all", 4, 0, text[0].type)
    assert names == {slot: (place,) for slot in (4, start, start + 16)}


def test_name__variables_of_one_slot__are_all_told() -> None:
    assert named(REGISTRY, 7) == ["pendingOwner", "httpAddressUpdatesOpen", "nodeCounter"]
    slot = erc7201_slot("chainkit.storage.SequencedLog")
    assert named(LOG, slot) == ["paused", "minPayloadSize", "maxPayloadSize"]


@pytest.mark.parametrize("name", SEQUENCED_LOGS)
def test_name__implementation_of_a_proxy__is_where_erc_1967_has_it(name: str) -> None:
    assert named(contract_layout(name), erc1967_slot("implementation")) == ["implementation"]


@pytest.mark.parametrize("name", ["NodeRegistry", "OriginatorSequence"])
def test_name__contract_without_proxy__has_no_implementation(name: str) -> None:
    assert named(contract_layout(name), erc1967_slot("implementation")) == []


@given(st.sampled_from([REGISTRY, LOG]), numbers.filter(lambda slot: slot > 1000))
def test_name__any_other_slot__has_no_name(layout: Layout, slot: int) -> None:
    keys = CandidateKeys(frozenset({100}), frozenset({b"\x11" * 20}), frozenset({bytes(32)}))

    assert name_slots(layout, keys, [slot]) == {}


def test_name__key_of_two_kinds__names_a_slot_once() -> None:
    keys = CandidateKeys(addresses=frozenset({bytes(20)}), words=frozenset({bytes(32)}))
    slot = at("bytes32", bytes(32), erc7201_slot("openzeppelin.storage.AccessControl")) + 1

    assert named(LOG, slot, keys) == ["roles[DEFAULT_ADMIN_ROLE].adminRole"]


@given(numbers, numbers)
def test_name__key_that_is_no_candidate__leaves_the_slot_without_name(key: int, other: int) -> None:
    keys = CandidateKeys(numbers=frozenset({other}))

    assert named(REGISTRY, at("uint256", key, 2), keys) == ([f"owners[{key}]"] * (key == other))


def test_name__all_slots_found__opens_no_further_mappings() -> None:
    class Counted(CandidateKeys):
        opened = 0

        def of_type(self, key_type: str) -> Any:
            Counted.opened += 1
            return super().of_type(key_type)

    keys = Counted(addresses=frozenset({b"\x11" * 20}))

    names = name_slots(REGISTRY, keys, [at("address", b"\x11" * 20, 3)])

    assert len(names) == 1
    # Owners by number, then balances by address: none of the others.
    assert Counted.opened == 2


@pytest.mark.parametrize("name", CONTRACTS)
def test_layouts__every_contract__say_where_its_storage_says(name: str) -> None:
    found = artifact(name)

    for namespace, members in found.storage.items():
        assert [
            (variable.label, variable.slot, variable.offset, variable.type.size)
            for variable in found.layouts[namespace]
        ] == [(member.label, member.slot, member.offset, member.size) for member in members]
    assert found.layouts.keys() >= found.storage.keys()
