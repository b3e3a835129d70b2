"""A past that code and answers do not show: `chainkit contracts verify` on a real anvil."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account

from chainkit.artifacts import creation_code, runtime_code
from chainkit.contract_state import DEFAULT_ADMIN_ROLE, IMPLEMENTATION_SLOT, erc7201_slot
from chainkit.interface import shipped_interface
from chainkit.parameters import read_parameters
from chainkit.signatures import keccak256
from localnet.anvil import Anvil
from localnet.deployment import PARAMETERS
from scripts._steps import Step, deployment_steps
from support.chain import LocalChain, dev_address, dev_secret
from support.command_line import Outcome, run
from support.tampering import ADMINISTRATOR, call_as, write_code

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


def deploy(anvil: Anvil, forged: dict[tuple[str, ...], bytes], path: Path) -> dict[str, Any]:
    """Deploy as the script does, but for what is forged, and write the record."""
    contracts: dict[str, Any] = {}
    for step in deployment_steps(dev_address(0), 0, read_parameters(PARAMETERS)):
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
    assert outcome.content["comparisons"][-1]["subject"] == "creation of GroupMessages' proxy"
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
    assert outcome.content["comparisons"][-1]["subject"] == "creation of NodeRegistry"


def test_verify__record_with_another_deployer__names_a_creation(
    anvil: Anvil, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    record = deploy(anvil, {}, path)
    path.write_text(json.dumps(record | {"deployer": "0x" + 20 * "de"}))

    outcome = verify(anvil.url, path)

    assert outcome.code == 1
    assert outcome.content["comparisons"][-1]["subject"] == "creation of OriginatorSequence"


def test_verify__proxy_ran_other_code_for_a_while__names_its_history(
    local_chain: LocalChain,
) -> None:
    proxy = local_chain.record.group_messages
    assert proxy.implementation is not None
    own = proxy.implementation.address
    other = bytes.fromhex("00" * 19 + "99")
    code = bytearray(local_chain.endpoint.code(own, local_chain.head().reference))
    # Other code at another address that answers as an upgrade asks; its own address is in it.
    write_code(local_chain, other, bytes(code).replace(own, other)[:-1] + b"\x00")
    upgrade = ("upgradeToAndCall", "0x" + other.hex(), b"")
    call_as(local_chain, ADMINISTRATOR, "GroupMessages", proxy.address, *upgrade)
    back = ("upgradeToAndCall", "0x" + own.hex(), b"")
    call_as(local_chain, ADMINISTRATOR, "GroupMessages", proxy.address, *back)

    outcome = verify(local_chain.url, local_chain.record_path)

    assert outcome.code == 1
    last = outcome.content["comparisons"][-1]
    assert last["subject"].startswith("implementations of GroupMessages since block")
    assert "unknown code at 0x" in last["got"]
