"""The same file is read by tests/forge/ContractVectors.t.sol: both sides give the same answers."""

import json
from importlib import resources
from typing import Any

import pytest

from chainkit.protocol.events import decode_node_updated, decode_payload_event
from chainkit.signatures import address_of, is_valid_public_key, keccak256
from chainkit.types import Log, Node, TopicKind
from support.vectors import from_hex, load

VECTORS = load("contracts")
SHIPPED_ABIS = {
    "IGroupMessages": "GroupMessages",
    "IIdentityUpdates": "IdentityUpdates",
    "IOriginatorSequence": "OriginatorSequence",
    "ISequencedLog": "GroupMessages",
    "INodeRegistry": "NodeRegistry",
}


def log_of(vector: dict[str, Any], topic0: str) -> Log:
    topics = (from_hex(topic0),)
    return Log(bytes(20), topics, from_hex(vector["data"]), 1, bytes(32), bytes(32), 0, 0)


def topic_of(signature: str) -> str:
    return next(e["topic0"] for e in VECTORS["events"] if e["signature"] == signature)


def shipped_signatures(interface: str, kind: str) -> set[str]:
    file = resources.files("chainkit.contracts.abi") / f"{SHIPPED_ABIS[interface]}.json"
    entries = json.loads(file.read_text(encoding="utf-8"))
    return {signature(entry) for entry in entries if entry["type"] == kind}


def signature(entry: dict[str, Any]) -> str:
    return f"{entry['name']}({','.join(type_of(item) for item in entry['inputs'])})"


def type_of(item: dict[str, Any]) -> str:
    if not item["type"].startswith("tuple"):
        return str(item["type"])
    inner = ",".join(type_of(component) for component in item["components"])
    return f"({inner}){item['type'].removeprefix('tuple')}"


@pytest.mark.parametrize("vector", VECTORS["publications"], ids=lambda v: str(v["sequenceId"]))
def test_decode_publication__in_its_order__gives_the_contracts_id_and_topic(
    vector: dict[str, Any],
) -> None:
    event = decode_payload_event(log_of(vector, vector["topic0"]))

    assert event.kind == TopicKind(vector["kind"])
    assert event.sequence_id == vector["sequenceId"]
    assert event.payload == from_hex(vector["payload"])
    assert event.kind.topic(event.identifier) == from_hex(vector["topic"])


@pytest.mark.parametrize("vector", VECTORS["nodes"], ids=lambda v: str(v["nodeId"]))
def test_decode_node__in_its_order__gives_the_registrys_id_and_address(
    vector: dict[str, Any],
) -> None:
    log = log_of(vector, topic_of("NodeUpdated(uint256,(bytes,string,bool))"))
    signing_key = from_hex(vector["signingKeyPub"])

    expected = Node(vector["nodeId"], signing_key, vector["httpAddress"], True)
    assert decode_node_updated(log) == expected
    assert is_valid_public_key(signing_key)
    assert address_of(signing_key) == vector["keyAddress"]


@pytest.mark.parametrize("vector", VECTORS["events"], ids=lambda v: v["signature"])
def test_hash_event__of_an_interface__is_its_topic_and_shipped(vector: dict[str, Any]) -> None:
    assert keccak256(vector["signature"].encode()) == from_hex(vector["topic0"])
    assert vector["signature"] in shipped_signatures(vector["declaredBy"], "event")


@pytest.mark.parametrize("vector", VECTORS["errors"], ids=lambda v: v["signature"])
def test_hash_error__of_an_interface__is_its_selector_and_shipped(vector: dict[str, Any]) -> None:
    assert keccak256(vector["signature"].encode())[:4] == from_hex(vector["selector"])
    assert vector["signature"] in shipped_signatures(vector["declaredBy"], "error")


def test_hash_namespace__of_the_settings__is_their_slot_by_erc7201() -> None:
    slots = {entry["name"]: from_hex(entry["slot"]) for entry in VECTORS["storageSlots"]}
    inner = int.from_bytes(keccak256(b"chainkit.storage.SequencedLog")) - 1

    slot = keccak256(inner.to_bytes(32))[:-1] + b"\0"

    assert slots["chainkit.storage.SequencedLog"] == slot
