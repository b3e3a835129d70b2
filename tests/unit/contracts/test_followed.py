"""Deployment records and what an indexer follows by them."""

import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from eth_utils import keccak

from chainkit.contracts.deployment import parse_deployment_record
from chainkit.contracts.followed import (
    FollowedDeployment,
    FollowedRegistry,
    SequenceCounter,
    read_followed_deployment,
)
from chainkit.errors import ConfigurationError
from chainkit.protocol.payload_contract import EventLayout, PayloadContract
from chainkit.types import TopicKind
from support.chains.followed_records import (
    COUNTER,
    ELSEWHERE,
    INDEXED_MESSAGE,
    LISTED,
    MESSAGES,
    OWN,
    REGISTRY,
    SHARED,
    UPDATES,
    listed,
    parsed,
    refusal_of,
)
from support.project import ROOT

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


def test_contracts_by_kind__one_of_each__are_found() -> None:
    found = parsed(LISTED).contracts_by_kind("record")

    assert {kind: contract.name for kind, contract in found.items()} == {
        TopicKind.GROUP_MESSAGE: "GroupMessageBroadcaster",
        TopicKind.IDENTITY_UPDATE: "IdentityUpdateBroadcaster",
    }


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (listed(MESSAGES, of_0=COUNTER), "one contract that emits IdentityUpdateCreated, got none"),
        (
            listed(
                *(MESSAGES, MESSAGES | {"name": "second", "address": "0x" + "cc" * 20}, UPDATES),
                of_0=SHARED | {"address": "0x" + "ee" * 20},
                of_1=None,
            ),
            "one contract that emits MessageSent, got GroupMessageBroadcaster, second",
        ),
        (
            listed(MESSAGES | {"originator_id": 7}, UPDATES, of_7=None, of_1=None),
            "expected 0, by which clients name commits, got 7",
        ),
    ],
    ids=["none", "two", "another originator"],
)
def test_contracts_by_kind__others__are_told(record: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^record: .*{told}"):
        parsed(record).contracts_by_kind("record")
