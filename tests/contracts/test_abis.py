import json
from pathlib import Path

import ape
import click
import pytest

from chainkit.text.hexadecimal import hex0x
from tools import write_abis
from tools.solidity import compiled_contracts

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
    return json.loads((write_abis.PACKAGE / "abi" / f"{name}.json").read_text())


def declaration(entry):
    inputs = ", ".join(f"{value['type']} {value['name']}" for value in entry["inputs"])
    outputs = ", ".join(value["type"] for value in entry.get("outputs", []))
    return f"{entry['name']}({inputs})" + (f" -> {outputs}" if outputs else "")


@ape.fixture(scope="module", chain_isolation=False)
def compilation():
    return write_abis.Compilation()


def test_shipped_files__beside_the_contracts__have_not_drifted(compilation):
    files = write_abis.generated_files(compilation, write_abis.read_releases())
    assert write_abis.drifting_files(files) == []


def test_build__that_these_tests_deploy__is_what_the_sources_compile_to(compilation, project):
    # Ape keeps what it compiled when only an imported file changes: then `ape compile --force`.
    for name, contract in compilation.contracts.items():
        code = contract["evm"]["deployedBytecode"]["object"]
        built = project.get_contract(name).contract_type.runtime_bytecode
        assert (str(built.bytecode) if built else "0x").removeprefix("0x") == code, name


def test_compiled_contracts__of_contracts__have_the_code_that_ape_deploys(project):
    for name, contract in compiled_contracts("contracts").items():
        built = project.get_contract(name).contract_type.deployment_bytecode
        assert str(built.bytecode) == hex0x(contract.creation_code), name


def test_drifting_files__one_changed_and_one_missing__names_both(tmp_path: Path):
    files = {"abi/Same.json": "[]\n", "abi/Changed.json": "[]\n", "artifact/Missing.json": "{}\n"}
    write_abis.write({"abi/Same.json": "[]\n", "abi/Changed.json": "[ ]\n"}, tmp_path)
    drifting = ["abi/Changed.json", "artifact/Missing.json"]
    assert write_abis.drifting_files(files, tmp_path) == drifting
    write_abis.write(files, tmp_path)
    assert write_abis.drifting_files(files, tmp_path) == []


def test_release__noted_twice__is_refused(compilation, tmp_path: Path):
    once = write_abis.with_release(write_abis.read_releases(tmp_path), compilation, "1.0.0")
    assert [[noted["version"] for noted in releases] for releases in once.values()] == [
        ["1.0.0"],
        ["1.0.0"],
    ]
    with pytest.raises(click.ClickException, match=r"1\.0\.0 is noted already"):
        write_abis.with_release(once, compilation, "1.0.0")


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
