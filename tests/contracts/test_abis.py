import json

import pytest

from chainkit.contracts.artifacts import CONTRACTS, creation_code
from chainkit.text.hexadecimal import hex0x
from tools.write_abis import PACKAGE

SPEC_EVENTS = {
    "GroupMessages": [
        "MessageSent(bytes32 groupId, bytes message, uint64 sequenceId)",
        "UpgradeAuthorized(address upgrader, address newImplementation)",
    ],
    "IdentityUpdates": [
        "IdentityUpdateCreated(bytes32 inboxId, bytes update, uint64 sequenceId)",
        "UpgradeAuthorized(address upgrader, address newImplementation)",
    ],
    "NodeRegistry": ["NodeUpdated(uint256 nodeId, tuple node)"],
}
_ADMINISTRATION = [
    "grantRole(bytes32 role, address account)",
    "renounceRole(bytes32 role, address callerConfirmation)",
    "revokeRole(bytes32 role, address account)",
    "pause()",
    "unpause()",
    "upgradeToAndCall(address newImplementation, bytes data)",
]
SPEC_FUNCTIONS = {
    "GroupMessages": ["addMessage(bytes32 groupId, bytes message)", *_ADMINISTRATION],
    "IdentityUpdates": ["addIdentityUpdate(bytes32 inboxId, bytes update)", *_ADMINISTRATION],
    "NodeRegistry": [
        "addNode(address to, bytes signingKeyPub, string httpAddress) -> uint32",
        "transferFrom(address from, address to, uint256 tokenId)",
        "updateHttpAddress(uint256 tokenId, string httpAddress)",
        "updateHealth(uint256 tokenId, bool isHealthy)",
        "healthyNodes() -> tuple[]",
        "allNodes() -> tuple[]",
        "getNode(uint256 tokenId) -> tuple",
    ],
}


def shipped(name):
    return json.loads((PACKAGE / "abi" / f"{name}.json").read_text())


def declaration(entry):
    inputs = ", ".join(f"{value['type']} {value['name']}" for value in entry["inputs"])
    outputs = ", ".join(value["type"] for value in entry.get("outputs", []))
    return f"{entry['name']}({inputs})" + (f" -> {outputs}" if outputs else "")


def test_build__that_these_tests_deploy__is_what_the_package_ships(project):
    # Ape keeps what it compiled when only an imported file changes: then `ape compile --force`.
    for name in CONTRACTS:
        built = project.get_contract(name).contract_type.deployment_bytecode
        assert str(built.bytecode) == hex0x(creation_code(name)), name


@pytest.mark.parametrize("name", SPEC_EVENTS)
def test_events__of_the_specification__are_declared_unindexed(name):
    events = [entry for entry in shipped(name) if entry["type"] == "event"]
    declared = {declaration(entry): entry for entry in events}
    for event in SPEC_EVENTS[name]:
        assert not any(value["indexed"] for value in declared[event]["inputs"])


@pytest.mark.parametrize("name", SPEC_FUNCTIONS)
def test_functions__of_the_specification__are_declared(name):
    functions = [entry for entry in shipped(name) if entry["type"] == "function"]
    assert set(SPEC_FUNCTIONS[name]) <= {declaration(entry) for entry in functions}


def test_node__in_event_and_getter__has_the_fields_of_the_specification():
    entries = {entry.get("name"): entry for entry in shipped("NodeRegistry")}
    node = entries["NodeUpdated"]["inputs"][1]["components"]
    fields = [(value["name"], value["type"]) for value in node]
    assert fields == [("signingKeyPub", "bytes"), ("httpAddress", "string"), ("isHealthy", "bool")]
    listed = entries["allNodes"]["outputs"][0]["components"]
    assert [(value["name"], value["type"]) for value in listed] == [
        ("nodeId", "uint32"),
        ("node", "tuple"),
    ]
    assert listed[1]["components"] == entries["getNode"]["outputs"][0]["components"]
