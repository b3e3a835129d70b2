import copy
import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from eth_utils import keccak
from hypothesis import given
from hypothesis import strategies as st

from chainkit.contracts.deployment import parse_deployment_record
from chainkit.contracts.followed import (
    FollowedDeployment,
    FollowedRegistry,
    SequenceCounter,
    parse_followed_deployment,
    read_followed_deployment,
)
from chainkit.errors import ConfigurationError
from chainkit.protocol.payload_contract import EventLayout, PayloadContract
from chainkit.types import TopicKind
from support.project import ROOT

GENESIS = "0x" + "9e" * 32
INDEXED_MESSAGE = "MessageSent(bytes16 indexed groupId, bytes message, uint64 indexed sequenceId)"
INDEXED_UPDATE = (
    "IdentityUpdateCreated(bytes32 indexed inboxId, bytes update, uint64 indexed sequenceId)"
)
MESSAGES: dict[str, Any] = {
    "name": "GroupMessageBroadcaster",
    "address": "0x" + "aA" * 20,
    "block": 12,
    "originator_id": 0,
    "event": INDEXED_MESSAGE,
}
UPDATES: dict[str, Any] = {
    "name": "IdentityUpdateBroadcaster",
    "address": "0x" + "bb" * 20,
    "block": 14,
    "originator_id": 1,
    "event": INDEXED_UPDATE,
}
COUNTER: dict[str, Any] = {"address": MESSAGES["address"], "function": "sequenceId()", "block": 12}
SHARED: dict[str, Any] = {"address": "0x" + "cc" * 20, "function": "last()", "block": 3}
LISTED: dict[str, Any] = {
    "format": 1,
    "chain_id": 31337,
    "genesis_hash": GENESIS,
    "payload_contracts": [MESSAGES, UPDATES],
    "counters": {"0": COUNTER, "1": None},
}
REGISTRY = {"address": "0x" + "dd" * 20, "block": 5}
ELSEWHERE = REGISTRY | {"chain_id": 1, "genesis_hash": "0x" + "d4" * 32}


def own_contract(number: int) -> dict[str, Any]:
    return {
        "address": "0x" + f"{number:02x}" * 20,
        "block": 10 - number,
        "transaction": "0x" + f"a{number}" * 32,
        "implementation": {
            "address": "0x" + f"b{number}" * 20,
            "block": 1,
            "transaction": "0x" + f"c{number}" * 32,
        },
    }


OWN_NAMES = ("GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence")
OWN: dict[str, Any] = {
    "format": 1,
    "chain_id": 31337,
    "genesis_hash": GENESIS,
    "deployer": "0x" + "de" * 20,
    "contracts": {name: own_contract(number) for number, name in enumerate(OWN_NAMES, start=1)},
}


def parsed(record: Any) -> FollowedDeployment:
    return parse_followed_deployment(record, "deployment record")


def refusal_of(record: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        parsed(record)
    return caught.value


def listed(*contracts: dict[str, Any], **counters: Any) -> dict[str, Any]:
    """The record with these contracts, and counters by ``of_`` and the originator id."""
    named = {name.removeprefix("of_"): value for name, value in counters.items()}
    return LISTED | {"payload_contracts": list(contracts), "counters": named}


# ------------------------------------------------------------------ our own records


def test_read__record_of_our_own__follows_both_contracts_under_originator_0(
    tmp_path: Path,
) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(OWN))

    deployment = read_followed_deployment(path)

    assert deployment == FollowedDeployment.of(parse_deployment_record(OWN, "record"))
    assert deployment.contracts == (
        PayloadContract("GroupMessages", b"\1" * 20, 9, TopicKind.GROUP_MESSAGE),
        PayloadContract("IdentityUpdates", b"\2" * 20, 8, TopicKind.IDENTITY_UPDATE),
    )
    last = keccak(text="last()")[:4]
    assert deployment.counters == {0: SequenceCounter(b"\4" * 20, last, 6)}
    genesis = b"\x9e" * 32
    assert deployment.registry == FollowedRegistry(b"\3" * 20, 7, 31337, genesis)
    assert (deployment.chain_id, deployment.genesis_hash) == (31337, genesis)
    assert (deployment.first_block, deployment.originator_ids) == (8, (0,))


@pytest.mark.parametrize("name", ["chain_id", "contracts", "deployer"])
def test_parse__record_of_our_own_that_lacks_a_field__names_it(name: str) -> None:
    refusal = refusal_of({key: value for key, value in OWN.items() if key != name})

    assert (refusal.place, refusal.got) == (name, "nothing")


def test_parse__registry_on_another_chain__replaces_the_one_that_was_deployed() -> None:
    deployment = parsed(OWN | {"node_registry": ELSEWHERE})

    assert deployment.registry == FollowedRegistry(b"\xdd" * 20, 5, 1, b"\xd4" * 32)
    assert deployment.contracts == parsed(OWN).contracts
    assert deployment.chain_id == 31337


# ------------------------------------------------------------------ other deployments


def test_parse__sequence_ids_said__are_counted_or_sparse() -> None:
    sparse, counted = UPDATES | {"sequence_ids": "sparse"}, MESSAGES | {"sequence_ids": "counted"}

    deployment = parsed(listed(counted, sparse, of_0=COUNTER, of_1=None))

    assert [contract.is_sparse for contract in deployment.contracts] == [False, True]
    assert deployment.sparse_originator_ids == frozenset({1})


@pytest.mark.parametrize(
    ("contracts", "counters", "place", "got"),
    [
        ([MESSAGES | {"sequence_ids": "some"}], {"of_0": None}, "sequence_ids", "'some'"),
        ([MESSAGES | {"sequence_ids": "sparse"}], {"of_0": COUNTER}, "counters.0", "a counter"),
        (
            [MESSAGES | {"sequence_ids": "sparse"}, UPDATES | {"originator_id": 0}],
            {"of_0": SHARED},
            "counters.0",
            "2 contracts",
        ),
    ],
    ids=["another word", "a counter", "a shared sequence"],
)
def test_parse__sequence_ids_that_cannot_be__names_the_field(
    contracts: list[dict[str, Any]], counters: dict[str, Any], place: str, got: str
) -> None:
    refusal = refusal_of(listed(*contracts, **counters))

    assert refusal.place.endswith(place)
    assert refusal.got == got


def test_parse__contract_with_a_counter_of_its_own__has_an_originator_of_its_own() -> None:
    deployment = parsed(LISTED)

    assert deployment.contracts == (
        PayloadContract(
            "GroupMessageBroadcaster",
            b"\xaa" * 20,
            12,
            TopicKind.GROUP_MESSAGE,
            0,
            EventLayout(16, is_identifier_indexed=True, is_sequence_indexed=True),
        ),
        PayloadContract(
            "IdentityUpdateBroadcaster",
            b"\xbb" * 20,
            14,
            TopicKind.IDENTITY_UPDATE,
            1,
            EventLayout(32, is_identifier_indexed=True, is_sequence_indexed=True),
        ),
    )
    selector = keccak(text="sequenceId()")[:4]
    assert deployment.counters == {0: SequenceCounter(b"\xaa" * 20, selector, 12), 1: None}
    assert (deployment.registry, deployment.first_block) == (None, 12)
    assert deployment.originator_ids == (0, 1)


MESSAGE_16 = "MessageSent(bytes16,bytes,uint64)"
MESSAGE_32 = "MessageSent(bytes32,bytes,uint64)"
UPDATE_32 = "IdentityUpdateCreated(bytes32,bytes,uint64)"


@pytest.mark.parametrize(
    ("event", "layout", "signature"),
    [
        (INDEXED_MESSAGE, EventLayout(16, True, True), MESSAGE_16),
        (MESSAGE_16, EventLayout(16), MESSAGE_16),
        ("MessageSent(bytes32 id, bytes message, uint64 number)", EventLayout(), MESSAGE_32),
        (
            "IdentityUpdateCreated(bytes32 indexed,bytes update, uint64)",
            EventLayout(32, True, False),
            UPDATE_32,
        ),
        (
            "IdentityUpdateCreated(bytes32 $id,bytes,uint64 indexed _1)",
            EventLayout(32, False, True),
            UPDATE_32,
        ),
    ],
)
def test_parse__event_as_solidity_declares_it__gives_layout_and_topic(
    event: str, layout: EventLayout, signature: str
) -> None:
    [contract] = parsed(listed(MESSAGES | {"event": event}, of_0=None)).contracts

    assert contract.layout == layout
    assert contract.topic == keccak(text=signature)
    assert (contract.kind is TopicKind.GROUP_MESSAGE) == signature.startswith("MessageSent")


@pytest.mark.parametrize(
    "event",
    [
        "MessageSent",
        "MessageSent(bytes20,bytes,uint64)",
        "MessageSent(bytes32,bytes indexed,uint64)",
        "MessageSent(bytes32,bytes indexed message,uint64)",
        "MessageSent(bytes32,bytes,uint256)",
        "MessageSent(bytes32,bytes,uint64,uint64)",
        "event MessageSent(bytes32,bytes,uint64)",
        "MessageSent(bytes32 é,bytes,uint64)",
        "",
        7,
        None,
    ],
)
def test_parse__event_of_another_form__says_what_is_expected(event: Any) -> None:
    refusal = refusal_of(listed(MESSAGES | {"event": event}, of_0=None))

    assert refusal.place == "payload_contracts[0].event"
    assert str(refusal.expected).startswith("MessageSent or IdentityUpdateCreated with (bytes32 ")
    assert refusal.got == repr(event)


def test_parse__contracts_that_share_a_sequence__may_share_an_originator() -> None:
    updates = UPDATES | {"originator_id": 0}

    deployment = parsed(listed(MESSAGES, updates, of_0=SHARED))

    assert deployment.originator_ids == (0,)
    assert deployment.counters == {0: SequenceCounter(b"\xcc" * 20, keccak(text="last()")[:4], 3)}


@pytest.mark.parametrize(
    ("counter", "got"), [(None, "null"), (COUNTER, "the counter of one of them")]
)
def test_parse__contracts_that_count_for_themselves__may_not_share_an_originator(
    counter: Any, got: str
) -> None:
    refusal = refusal_of(listed(MESSAGES, UPDATES | {"originator_id": 0}, of_0=counter))

    assert str(refusal) == (
        "deployment record: expected a sequence that all 2 contracts of this originator draw "
        f"from, got {got} (counters.0)"
    )


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        (None, None),
        (REGISTRY, FollowedRegistry(b"\xdd" * 20, 5, 31337, b"\x9e" * 32)),
        (ELSEWHERE, FollowedRegistry(b"\xdd" * 20, 5, 1, b"\xd4" * 32)),
    ],
    ids=["none", "the same chain", "another chain"],
)
@pytest.mark.parametrize("record", [OWN, LISTED], ids=["our own", "listed"])
def test_parse__node_registry__may_stand_anywhere_or_nowhere(
    record: dict[str, Any], registry: Any, expected: FollowedRegistry | None
) -> None:
    assert parsed(record | {"node_registry": registry}).registry == expected


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


def test_parse__record_of_the_documentation__is_followed() -> None:
    page = (ROOT / "deployments" / "README.md").read_text()
    [text] = [
        block for block in re.findall(r"```json\n(.*?)```", page, re.S) if "counters" in block
    ]
    addresses = (f'"0x{number:040x}"' for number in count(1))
    text = re.sub('"0x…"', lambda _: next(addresses), text).replace("0xd4e5…", "0x" + "d4" * 32)

    deployment = parsed(json.loads(text))

    assert deployment.originator_ids == (0, 1)
    assert {str(contract.layout) for contract in deployment.contracts} == {
        "(bytes16 indexed,bytes,uint64 indexed)",
        "(bytes32 indexed,bytes,uint64 indexed)",
    }
    assert deployment.registry is not None
