"""Deployment records that no indexer can follow: the fault is named."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import ConfigurationError
from support.chains.followed_records import (
    COUNTER,
    GENESIS,
    LISTED,
    MESSAGES,
    OWN,
    REGISTRY,
    UPDATES,
    listed,
    parsed,
    refusal_of,
)

# ------------------------------------------------------------------ what cannot be used


@pytest.mark.parametrize("name", ["name", "address", "block", "originator_id", "event"])
def test_parse__contract_that_lacks_a_field__names_it(name: str) -> None:
    messages = {key: value for key, value in MESSAGES.items() if key != name}

    refusal = refusal_of(LISTED | {"payload_contracts": [UPDATES, messages]})

    assert (refusal.place, refusal.got) == (f"payload_contracts[1].{name}", "nothing")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"format": 2}, "format"),
        ({"format": "1"}, "format"),
        ({"chain_id": -1}, "chain_id"),
        ({"genesis_hash": "0x"}, "genesis_hash"),
        ({"payload_contracts": {}}, "payload_contracts"),
        ({"payload_contracts": [], "counters": {}}, "payload_contracts"),
        ({"payload_contracts": [MESSAGES, 7]}, "payload_contracts[1]"),
        ({"payload_contracts": [MESSAGES | {"name": " "}, UPDATES]}, "payload_contracts[0].name"),
        (
            {"payload_contracts": [MESSAGES | {"originator_id": 2**32}, UPDATES]},
            "payload_contracts[0].originator_id",
        ),
        ({"contracts": OWN["contracts"]}, "contracts"),
        ({"counters": None}, "counters"),
        ({"counters": {"0": 5, "1": None}}, "counters.0"),
        ({"counters": {"0": COUNTER | {"function": "last"}, "1": None}}, "counters.0.function"),
        ({"counters": {"0": COUNTER | {"function": "a(b)"}, "1": None}}, "counters.0.function"),
        ({"counters": {"0": COUNTER | {"address": "0x1"}, "1": None}}, "counters.0.address"),
        ({"counters": {"0": COUNTER | {"block": None}, "1": None}}, "counters.0.block"),
        ({"counters": {"0": COUNTER, "1": None, "01": None}}, "counters.01"),
        ({"counters": {"0": COUNTER, "1": None, "4294967296": None}}, "counters.4294967296"),
        ({"counters": {"0": COUNTER}}, "counters.1"),
        ({"counters": {"0": COUNTER, "1": None, "2": None}}, "counters"),
        ({"node_registry": 5}, "node_registry"),
        ({"node_registry": {"block": 1}}, "node_registry.address"),
        ({"node_registry": REGISTRY | {"chain_id": 1}}, "node_registry.genesis_hash"),
        ({"node_registry": REGISTRY | {"genesis_hash": GENESIS}}, "node_registry.chain_id"),
    ],
)
def test_parse__one_field_that_cannot_be_used__names_only_that(
    change: dict[str, Any], place: str
) -> None:
    assert refusal_of(LISTED | change).place == place


@pytest.mark.parametrize("name", ["name", "address"])
def test_parse__two_contracts_with_one_name_or_address__says_which(name: str) -> None:
    refusal = refusal_of(listed(MESSAGES, UPDATES | {name: MESSAGES[name]}, of_0=None, of_1=None))

    assert refusal.expected == f"each {name} once"
    assert str(refusal.got).lower() == f"{MESSAGES[name]} 2 times".lower()


def test_parse__many_fields_that_cannot_be_used__tells_all_in_one_error() -> None:
    record = listed(MESSAGES | {"block": -1, "event": ""}, 5, of_x=None)
    record |= {"genesis_hash": None, "node_registry": {}}
    del record["chain_id"]

    refusal = refusal_of(record)

    places = [
        "payload_contracts[0].block",
        "payload_contracts[0].event",
        "payload_contracts[1]",
        "counters.x",
        "chain_id",
        "genesis_hash",
        "node_registry.address",
        "node_registry.block",
    ]
    assert refusal.place == ", ".join(places)
    for told in (str(refusal.expected), str(refusal.got)):
        assert [part.split(" ")[0] for part in told.split("; ")] == places
    assert "payload_contracts[0].block an integer from 0; " in str(refusal)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
PATHS: list[tuple[str | int, ...]] = [
    *((name,) for name in LISTED),
    *(("payload_contracts", number, name) for number in (0, 1) for name in MESSAGES),
    *(("counters", "0", name) for name in COUNTER),
    ("counters", "1"),
]


@given(st.sampled_from(PATHS), json_values)
def test_parse__any_field_replaced__is_followed_or_refused(
    path: tuple[str | int, ...], value: Any
) -> None:
    record = copy.deepcopy(LISTED)
    parent: Any = record
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value

    try:
        deployment = parsed(record)
    except ConfigurationError as error:
        assert error.place
        return
    assert set(deployment.counters) == set(deployment.originator_ids)
    assert len(deployment.contracts) == len(record["payload_contracts"])


@given(json_values)
def test_parse__any_json__is_refused(content: Any) -> None:
    assert refusal_of(content).subject == "deployment record"
    assert refusal_of({"payload_contracts": content}).subject == "deployment record"
