import gzip
import json
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from chainkit.contracts.artifacts import creation_code
from chainkit.text.hexadecimal import hex0x
from support.project import ROOT

PROGRAM = ROOT / "tools" / "upgrades" / "main.mjs"

BASE = "contracts/base/SequencedLog.sol"
GROUP_MESSAGES = "contracts/GroupMessages.sol"
NAMESPACE = "/// @custom:storage-location erc7201:chainkit.storage.SequencedLog\n"
FIELDS = "bool paused;\n        uint32 minPayloadSize;\n        uint32 maxPayloadSize;\n"
MEMBERS = "/* PUBLISHING */\n"
ALLOW_CONSTRUCTOR = "/// @custom:oz-upgrades-unsafe-allow constructor\n    constructor"

IMPORT_UUPS = (
    'import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";\n'
)


@dataclass(frozen=True)
class Change:
    """A change that somebody might make, and the kind of the fault that must be named."""

    fault: str
    edits: tuple[tuple[str, str, str], ...]
    """(file, text, what replaces it wherever it is)"""


def with_member(text):
    return GROUP_MESSAGES, MEMBERS, f"{MEMBERS}    {text}\n"


UNSAFE = {
    "fields_reordered": Change(
        "layoutchange",
        ((BASE, FIELDS, "uint32 minPayloadSize;\nbool paused;\nuint32 maxPayloadSize;\n"),),
    ),
    "field_inserted": Change("insert", ((BASE, FIELDS, f"uint64 inserted;\n{FIELDS}"),)),
    "field_removed": Change(
        "delete",
        (
            (BASE, FIELDS, FIELDS.replace("bool paused;\n", "")),
            (BASE, "_sequencedLogStorage().paused = true;\n", ""),
            (BASE, "_sequencedLogStorage().paused = false;\n", ""),
            (BASE, "_sequencedLogStorage().paused", "false"),
            (BASE, "$.paused", "false"),
        ),
    ),
    "field_renamed": Change(
        "rename",
        (
            (BASE, FIELDS, FIELDS.replace("bool paused", "bool held")),
            (BASE, "_sequencedLogStorage().paused", "_sequencedLogStorage().held"),
            (BASE, "$.paused", "$.held"),
        ),
    ),
    "type_changed": Change(
        "typechange",
        (
            (BASE, FIELDS, FIELDS.replace("uint32 max", "uint64 max")),
            (
                BASE,
                "($.minPayloadSize, $.maxPayloadSize)",
                "($.minPayloadSize, uint32($.maxPayloadSize))",
            ),
        ),
    ),
    "namespace_renamed": Change(
        "delete-namespace", ((BASE, NAMESPACE, NAMESPACE.replace("Log", "Record")),)
    ),
    "namespace_removed": Change("delete-namespace", ((BASE, NAMESPACE, ""),)),
    "slot_moved": Change("namespace-slot", ((BASE, "0xc4e9928a0b77", "0xc4e9928a0b78"),)),
    "plain_variable_in_the_base": Change(
        "storage-outside-namespace",
        ((BASE, NAMESPACE, f"/// @dev Plain.\nuint256 internal _inserted;\n{NAMESPACE}"),),
    ),
    "variable_with_an_initial_value": Change(
        "state-variable-assignment", (with_member("uint256 internal _inserted = 1;"),)
    ),
    "immutable_that_nobody_allowed": Change(
        "state-variable-immutable", (with_member("uint256 internal immutable _inserted = 1;"),)
    ),
    "constructor_that_nobody_allowed": Change(
        "constructor", ((GROUP_MESSAGES, ALLOW_CONSTRUCTOR, "constructor"),)
    ),
    "implementation_left_open": Change(
        "initializers-enabled", ((BASE, "_disableInitializers();\n", ""),)
    ),
    "selfdestruct": Change(
        "selfdestruct",
        (with_member("function end() external { selfdestruct(payable(msg.sender)); }"),),
    ),
    "delegatecall": Change(
        "delegatecall",
        (with_member('function run(address code) external { code.delegatecall(""); }'),),
    ),
    "no_upgrade_function": Change(
        "missing-public-upgradeto",
        (
            (BASE, IMPORT_UUPS, ""),
            (
                BASE,
                "AccessControlEnumerableUpgradeable,\n    UUPSUpgradeable\n",
                "AccessControlEnumerableUpgradeable\n",
            ),
            (BASE, "internal\n        override\n        onlyRole", "internal onlyRole"),
        ),
    ),
    "contract_made_abstract": Change(
        "missing-contract",
        ((GROUP_MESSAGES, "\ncontract GroupMessages", "\nabstract contract GroupMessages"),),
    ),
}
SAFE = {
    "field_appended": Change("", ((BASE, FIELDS, f"{FIELDS}uint64 appended;\n"),)),
    "function_added": Change("", (with_member("function two() external pure { }"),)),
}


def run(*arguments):
    command = ["node", str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def changed_contracts(folder, change):
    shutil.copytree(ROOT / "contracts", folder / "contracts")
    for name, text, replacement in change.edits:
        path = folder / name
        source = path.read_text(encoding="utf-8")
        assert text in source, (name, text)
        path.write_text(source.replace(text, replacement), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def faults_of(tmp_path_factory):
    """The faults of each change, by its name."""
    changes = UNSAFE | SAFE
    folders = [
        changed_contracts(tmp_path_factory.mktemp(name), change) for name, change in changes.items()
    ]
    program = ROOT / "tests" / "support" / "check_upgrades.mjs"
    command = ["node", str(program), *map(str, folders)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return {
        name: [fault for upgrade in upgrades for fault in upgrade["faults"]]
        for name, upgrades in zip(changes, answers, strict=True)
    }


@pytest.mark.parametrize("name", UNSAFE)
def test_check__with_an_unsafe_change__names_the_fault(faults_of, name):
    assert UNSAFE[name].fault in {fault["kind"] for fault in faults_of[name]}
    assert all(fault["place"] and fault["text"] for fault in faults_of[name])


@pytest.mark.parametrize("name", SAFE)
def test_check__with_a_safe_change__accepts_it(faults_of, name):
    assert faults_of[name] == []


def test_check__json_of_an_unsafe_change__says_so_and_exits_with_1(tmp_path, faults_of):
    root = changed_contracts(tmp_path, UNSAFE["field_renamed"])
    result = run("check", "--root", root, "--json")
    assert result.returncode == 1, result.stderr
    answer = json.loads(result.stdout)
    assert not answer["safe"]
    found = [fault for upgrade in answer["upgrades"] for fault in upgrade["faults"]]
    assert found == faults_of["field_renamed"]


def test_check__of_this_project__accepts_contracts_and_successors():
    result = run("check")
    assert result.returncode == 0, result.stdout + result.stderr
    for contract in ("GroupMessages", "IdentityUpdates"):
        assert f"contracts/{contract}.sol:{contract}: safe" in result.stdout
        successor = f"{contract}Successor"
        assert f"tests/solidity/{successor}.sol:{successor}: safe" in result.stdout


def test_check__of_sources_that_do_not_compile__exits_with_2(tmp_path):
    broken = Change("", ((BASE, "abstract contract SequencedLog", "abstract contrast"),))
    result = run("check", "--root", changed_contracts(tmp_path, broken))
    assert (result.returncode, result.stdout) == (2, "")
    assert "contracts/base/SequencedLog.sol" in result.stderr


def test_check__without_a_release__exits_with_2(tmp_path):
    result = run("check", "--releases", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "expected a released build info, found none" in result.stderr


def bytecode_in(path, contract):
    info = json.loads(gzip.decompress(path.read_bytes()))
    evm = info["output"]["contracts"][f"contracts/{contract}.sol"][contract]["evm"]
    return "0x" + evm["bytecode"]["object"]


def test_write__of_a_new_version__keeps_the_bytecode_that_is_deployed(tmp_path):
    assert run("write", "0.1.0", "--releases", tmp_path).returncode == 0
    (path,) = tmp_path.glob("*/*")
    for contract in ("GroupMessages", "IdentityUpdates"):
        assert bytecode_in(path, contract) == hex0x(creation_code(contract))


def test_write__of_a_released_version__is_refused(tmp_path):
    path = tmp_path / "0.1.0" / "build-info.json.gz"
    path.parent.mkdir()
    path.write_bytes(b"released")
    refused = run("write", "0.1.0", "--releases", tmp_path)
    assert (refused.returncode, path.read_bytes()) == (2, b"released")
    assert "expected a version not released yet" in refused.stderr
    replaced = run("write", "0.1.0", "--replace", "--releases", tmp_path)
    assert (replaced.returncode, run("check", "--releases", tmp_path).returncode) == (0, 0)


def test_release__in_this_repository__names_no_folder_of_a_machine():
    (path, *_) = sorted((ROOT / "releases").glob("*/build-info.json.gz"))
    info = json.loads(gzip.decompress(path.read_bytes()))
    assert all(
        name.startswith(("contracts/", "node_modules/")) for name in info["input"]["sources"]
    )
    assert str(ROOT) not in json.dumps(info)
