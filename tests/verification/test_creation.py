"""A past that code and answers do not show: `chainkit contracts verify` on a real anvil."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account

from chainkit.chain import Endpoint
from chainkit.contracts.artifacts import creation_code, runtime_code
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import Parameters, read_parameters
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, IMPLEMENTATION_SLOT, erc7201_slot
from chainkit.signatures import keccak256
from chainkit.types import Log
from localnet.anvil import Anvil
from localnet.deployment import PARAMETERS
from scripts._steps import Step, deployment_steps
from support.chains.chain import LocalChain, dev_address, dev_secret
from support.chains.tampering import ADMINISTRATOR, call_as, write_code
from support.command_line import Outcome, run
from support.differences import differences

HIDDEN = 5
CONSTRUCTORS = {
    "OriginatorSequence": ["address", "address"],
    "GroupMessages": ["address"],
    "IdentityUpdates": ["address"],
    "SequencedLogProxy": ["address", "bytes"],
    "NodeRegistry": ["address"],
}


@pytest.fixture
def anvil() -> Iterator[Anvil]:
    with Anvil() as anvil:
        yield anvil


def send(anvil: Anvil, data: bytes, to: str | None = None, sender: int = 0) -> dict[str, Any]:
    """Send a transaction and return its receipt."""
    nonce = int(anvil.request("eth_getTransactionCount", dev_address(sender), "latest"), 16)
    fees = {"gas": 5_000_000, "maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9}
    transaction = {"chainId": 31337, "nonce": nonce, "data": data, **fees}
    raw = Account.sign_transaction(transaction | ({"to": to} if to else {}), dev_secret(sender))
    receipt: dict[str, Any] = anvil.request(
        "eth_sendRawTransactionSync", "0x" + bytes(raw.raw_transaction).hex()
    )
    return receipt


def genuine(step: Step) -> bytes:
    return creation_code(step.contract) + encode(CONSTRUCTORS[step.contract], step.arguments)


def deploy(
    anvil: Anvil,
    forged: dict[tuple[str, ...], bytes],
    path: Path,
    parameters: Parameters | None = None,
) -> dict[str, Any]:
    """Deploy as the script does, but for what is forged, and write the record."""
    contracts: dict[str, Any] = {}
    given = parameters or read_parameters(PARAMETERS)
    for step in deployment_steps(dev_address(0), 0, given):
        receipt = send(anvil, forged.get(step.place) or genuine(step))
        assert receipt["status"] == "0x1"
        entry = contracts
        for name in step.place:
            entry = entry.setdefault(name, {})
        entry["address"] = step.address
        entry["block"] = int(receipt["blockNumber"], 16)
        entry["transaction"] = receipt["transactionHash"]
    record = {
        "format": 1,
        "chain_id": 31337,
        "genesis_hash": "0x" + anvil.endpoint.header(0).hash.hex(),
        "deployer": dev_address(0),
        "contracts": contracts,
    }
    path.write_text(json.dumps(record))
    return record


def verify(url: str, path: Path) -> Outcome:
    places = ("--rpc", url, "--deployment", path, "--parameters", PARAMETERS)
    return run("contracts", "verify", *places, "--json")


def push(value: bytes | int, size: int = 32) -> bytes:
    word = value if isinstance(value, bytes) else value.to_bytes(size, "big")
    return bytes([0x5F + size]) + word.rjust(size, b"\0")


def mapping_slot(slot: int, key: bytes) -> int:
    return int.from_bytes(keccak256(encode(["bytes32", "uint256"], [key.rjust(32, b"\0"), slot])))


def proxy_with_a_hidden_administrator(step: Step) -> bytes:
    """Creation code that also makes a stranger administrator, and returns the genuine proxy."""
    implementation, call = bytes.fromhex(step.arguments[0][2:]), step.arguments[1]
    roles = erc7201_slot("openzeppelin.storage.AccessControl")
    members = mapping_slot(roles, DEFAULT_ADMIN_ROLE)
    hidden = mapping_slot(members, bytes.fromhex(dev_address(HIDDEN)[2:]))
    runtime = runtime_code("SequencedLogProxy", {})
    sstore, log2, codecopy, return_ = b"\x55", b"\xa2", b"\x39", b"\xf3"
    delegatecall_with_all_gas = b"\x5a\xf4\x50"

    def program(size: int) -> bytes:
        copied = push(len(call), 2) + push(size + len(runtime), 2) + push(0, 2) + codecopy
        called = push(0, 2) + push(0, 2) + push(len(call), 2) + push(0, 2) + push(implementation)
        returned = push(len(runtime), 2) + push(size, 2) + push(0, 2) + codecopy
        return (
            (push(implementation) + push(IMPLEMENTATION_SLOT) + sstore)
            + (push(1) + push(hidden) + sstore)
            + (push(implementation) + push(keccak256(b"Upgraded(address)")))
            + (push(0, 2) + push(0, 2) + log2)
            + (copied + called + delegatecall_with_all_gas)
            + (returned + push(len(runtime), 2) + push(0, 2) + return_)
        )

    return program(len(program(0))) + runtime + call


def test_verify__proxy_created_with_a_hidden_administrator__names_its_creation(
    anvil: Anvil, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    steps = deployment_steps(dev_address(0), 0, read_parameters(PARAMETERS))
    step = next(step for step in steps if step.place == ("GroupMessages",))
    deploy(anvil, {step.place: proxy_with_a_hidden_administrator(step)}, path)

    outcome = verify(anvil.url, path)

    assert outcome.code == 1
    assert differences(outcome)[0]["subject"] == "creation of GroupMessages' proxy"
    # The hidden account does rule the contract, and the list of administrators does not have it.
    pause = shipped_interface("GroupMessages").encode("pause")
    assert send(anvil, pause, step.address, HIDDEN)["status"] == "0x1"


def test_verify__created_as_the_script_does__holds(anvil: Anvil, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    deploy(anvil, {}, path)
    assert verify(anvil.url, path).code == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("block", 999_999), ("transaction", "0x" + 64 * "0")],
)
def test_verify__record_with_a_foreign_provenance__names_the_creation(
    anvil: Anvil, tmp_path: Path, field: str, value: object
) -> None:
    path = tmp_path / "record.json"
    record = deploy(anvil, {}, path)
    record["contracts"]["NodeRegistry"][field] = value
    path.write_text(json.dumps(record))

    outcome = verify(anvil.url, path)

    assert outcome.code == 1
    assert differences(outcome)[0]["subject"] == "creation of NodeRegistry"


def test_verify__record_with_another_deployer__names_a_creation(
    anvil: Anvil, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    record = deploy(anvil, {}, path)
    path.write_text(json.dumps(record | {"deployer": "0x" + 20 * "de"}))

    outcome = verify(anvil.url, path)

    assert outcome.code == 1
    assert differences(outcome)[0]["subject"] == "creation of OriginatorSequence"


def test_verify__deployer_was_first_administrator_and_owner__names_it(
    anvil: Anvil, tmp_path: Path
) -> None:
    path, deployer = tmp_path / "record.json", bytes.fromhex(dev_address(0)[2:])
    council = read_parameters(PARAMETERS)
    own = replace(council, message_admin=deployer, registry_owner=deployer)
    record = deploy(anvil, {}, path, own)["contracts"]
    for name in ("GroupMessages", "IdentityUpdates"):
        interface, address = shipped_interface(name), record[name]["address"]
        send(anvil, interface.encode("grantRole", bytes(32), dev_address(ADMINISTRATOR)), address)
        send(anvil, interface.encode("renounceRole", bytes(32), dev_address(0)), address)
    registry, address = shipped_interface("NodeRegistry"), record["NodeRegistry"]["address"]
    send(anvil, registry.encode("transferOwnership", dev_address(ADMINISTRATOR)), address)
    send(anvil, registry.encode("acceptOwnership"), address, ADMINISTRATOR)

    outcome = run(
        *("contracts", "verify", "--rpc", anvil.url, "--deployment", path),
        *("--parameters", PARAMETERS, "--json"),
    )

    assert outcome.code == 1
    comparisons = outcome.content["comparisons"]
    assert [item["subject"] for item in comparisons if item["result"] == "differs"] == [
        "first administrator of GroupMessages",
        "first administrator of IdentityUpdates",
        "first owner of NodeRegistry",
    ]


@pytest.fixture
def other_code_for_a_while(local_chain: LocalChain) -> LocalChain:
    """GroupMessages was upgraded to code of no release, and back."""
    proxy = local_chain.record.group_messages
    assert proxy.implementation is not None
    own, other = proxy.implementation.address, bytes.fromhex("00" * 19 + "99")
    code = local_chain.endpoint.code(own, local_chain.head().reference)
    # It answers as an upgrade asks: only its metadata and its own address differ.
    write_code(local_chain, other, code.replace(own, other)[:-1] + b"\x00")
    for implementation in (other, own):
        call = ("upgradeToAndCall", "0x" + implementation.hex(), b"")
        call_as(local_chain, ADMINISTRATOR, "GroupMessages", proxy.address, *call)
    return local_chain


def assert_history_differs(chain: LocalChain, got: str) -> None:
    outcome = verify(chain.url, chain.record_path)
    assert outcome.code == 1
    subject = "implementations of GroupMessages since block"
    (history,) = (each for each in differences(outcome) if each["subject"].startswith(subject))
    assert got in history["got"]


def test_verify__proxy_ran_other_code_for_a_while__names_its_history(
    other_code_for_a_while: LocalChain,
) -> None:
    assert_history_differs(other_code_for_a_while, "unknown code at 0x")


Logs = Callable[..., list[Log]]


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Logs], Logs]], None]:
    """Lets the endpoint answer otherwise to the question for logs."""
    return lambda change: monkeypatch.setattr(Endpoint, "logs", change(Endpoint.logs))


def without_topics(ask: Logs) -> Logs:
    def answer(*arguments: Any, **options: Any) -> list[Log]:
        return [log._replace(topics=log.topics[:1]) for log in ask(*arguments, **options)]

    return answer


def test_verify__event_without_an_implementation__names_the_history(
    local_chain: LocalChain, logs: Callable[[Callable[[Logs], Logs]], None]
) -> None:
    logs(without_topics)
    assert_history_differs(local_chain, "an Upgraded event without an implementation")
