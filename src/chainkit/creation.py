"""How the contracts came to be: what created them, and what a proxy has run since.

Code and answers show the present only. Other creation code than this package's could leave the
same contract behind with storage of its own in it: an administrator who is in no list, a sequence
id that was taken and never emitted. An implementation that a proxy ran for a while could do the
same. So the transactions of the record are compared with what the package would have sent, to the
byte, and every implementation since must be a known release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address

from chainkit.artifacts import creation_code, identify_release
from chainkit.chain import parse_bytes, parse_integer
from chainkit.comparison import Comparison, code_words, told
from chainkit.contract_state import ContractState
from chainkit.deployment import DeployedContract, DeploymentRecord
from chainkit.errors import InconsistentAnswer, MalformedData
from chainkit.interface import render_call, shipped_interface
from chainkit.signatures import keccak256
from chainkit.types import ADDRESS_LENGTH

_UPGRADED: Final = keccak256(b"Upgraded(address)")
_PROXY_ARGUMENTS: Final = ("address", "bytes")


@dataclass(frozen=True, slots=True)
class Creation:
    """One mined transaction that created a contract."""

    address: bytes
    """20 bytes: what it created."""
    block: int
    """Its height."""
    sender: bytes
    """20 bytes."""
    data: bytes
    """Creation code and ABI-encoded arguments."""

    def words(self) -> str:
        """Say it so that two of them can be compared by eye."""
        address, sender = to_checksum_address(self.address), to_checksum_address(self.sender)
        return f"{address} in block {self.block}, by {sender}, with {code_words(self.data)}"


def compare_creations(state: ContractState, record: DeploymentRecord) -> Iterator[Comparison]:
    """Compare how each contract was created with what the package would have sent.

    What a proxy was initialized with is compared where the record holds parameters, else told.
    """
    sequence, registry = record.originator_sequence, record.node_registry
    callers = encode(["address", "address"], list(record.payload_addresses))
    yield from _compare(state, record, sequence, callers)
    for proxy in record.sequenced_logs:
        yield from _compare_implementation(state, record, proxy)
        yield from _compare_proxy(state, record, proxy)
        yield from _compare_history(state, proxy)
    found = _fetch(state, registry)
    given = record.parameters
    # The owner at first; without parameters the transaction says who it was.
    owner = given.registry_owner if given else (found.data[-ADDRESS_LENGTH:] if found else b"")
    yield from _compare(state, record, registry, owner.rjust(32, b"\0"))


def _compare_implementation(
    state: ContractState, record: DeploymentRecord, proxy: DeployedContract
) -> Iterator[Comparison]:
    implementation = proxy.implementation
    assert implementation is not None, "a record's logs are proxies"
    arguments = encode(["address"], [record.originator_sequence.address])
    found = _fetch(state, implementation)
    # Anybody may deploy an implementation, so whoever did is as expected.
    sender = found.sender if found else record.deployer
    expected = _expected(implementation, proxy.name, sender, arguments)
    yield _comparison(f"{proxy.name}' implementation", expected, found)


def _compare_proxy(
    state: ContractState, record: DeploymentRecord, proxy: DeployedContract
) -> Iterator[Comparison]:
    found = _fetch(state, proxy)
    code = creation_code("SequencedLogProxy")
    arguments = found.data[len(code) :] if found else b""
    try:
        first, call = decode(_PROXY_ARGUMENTS, arguments)
        arguments = encode(_PROXY_ARGUMENTS, [first, call])
        told_call = _initialization(proxy.name, call)
    except (DecodingError, MalformedData):
        told_call = "no call to initialize"
    expected = _expected(proxy, "SequencedLogProxy", record.deployer, arguments)
    yield _comparison(f"{proxy.name}' proxy", expected, found)
    wanted = None
    if record.parameters:
        bounds = record.parameters.payload_bounds[proxy.name]
        admin = to_checksum_address(record.parameters.message_admin)
        data = shipped_interface(proxy.name).encode(
            "initialize", admin, bounds.minimum, bounds.maximum
        )
        wanted = _initialization(proxy.name, data)
    yield told(f"first call to {proxy.name}", wanted, told_call)


def _compare_history(state: ContractState, proxy: DeployedContract) -> Iterator[Comparison]:
    subject = f"implementations of {proxy.name} since block {proxy.block}"
    try:
        logs = state.endpoint.logs(
            proxy.block, state.block.number, [proxy.address], topics=[_UPGRADED]
        )
    except InconsistentAnswer as error:
        yield told(subject, None, f"not known: {error.got}")
        return
    addresses = dict.fromkeys(log.topics[1][-ADDRESS_LENGTH:] for log in logs)
    unknown = [
        to_checksum_address(address)
        for address in addresses
        if identify_release(proxy.name, state.code(address)) is None
    ]
    got = f"unknown code at {', '.join(unknown)}" if unknown else "all known releases"
    yield Comparison(subject, "all known releases", got if addresses else "none")


def _initialization(name: str, call: bytes) -> str:
    arguments = shipped_interface(name).arguments("initialize", call)
    return render_call("initialize", arguments)


def _compare(
    state: ContractState, record: DeploymentRecord, contract: DeployedContract, arguments: bytes
) -> Iterator[Comparison]:
    expected = _expected(contract, contract.name, record.deployer, arguments)
    yield _comparison(contract.name, expected, _fetch(state, contract))


def _expected(contract: DeployedContract, name: str, sender: bytes, arguments: bytes) -> Creation:
    data = creation_code(name) + arguments
    return Creation(contract.address, contract.block, sender, data)


def _comparison(what: str, expected: Creation, found: Creation | None) -> Comparison:
    got = found.words() if found else "no such transaction at this endpoint"
    return Comparison(f"creation of {what}", expected.words(), got)


def _fetch(state: ContractState, contract: DeployedContract) -> Creation | None:
    """Return what a recorded transaction created, None if it is not known or created nothing."""
    endpoint, hash_ = state.endpoint, "0x" + contract.transaction.hex()
    receipt = endpoint.receipt(contract.transaction)
    transaction = endpoint.request("eth_getTransactionByHash", hash_)
    if not receipt or not transaction:
        return None
    answer = (receipt, transaction)
    return endpoint.parsed(f"transaction {hash_}", _parse_creation, answer)


def _parse_creation(answer: tuple[dict[str, Any], dict[str, Any]]) -> Creation | None:
    receipt, transaction = answer
    if not receipt["contractAddress"] or parse_integer(receipt["status"]) != 1:
        return None
    return Creation(
        address=parse_bytes(receipt["contractAddress"], ADDRESS_LENGTH),
        block=parse_integer(receipt["blockNumber"]),
        sender=parse_bytes(transaction["from"], ADDRESS_LENGTH),
        data=parse_bytes(transaction["input"]),
    )
