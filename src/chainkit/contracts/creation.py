"""How the contracts were created, and which implementations a proxy has run since.

Code and answers show the present only. Other creation code than this package's could leave the same
contract behind with storage of its own in it: an administrator who is in no list, a sequence id
that was taken and never emitted. An implementation that a proxy ran for a while could do the same.
So the transactions of the record are compared, byte by byte, with the transactions that the package
would send, and every implementation since must be a known release.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address

from chainkit.chain import LogFilter, parse_integer
from chainkit.chain.log_ranges import logs_by_pieces
from chainkit.contracts.artifacts import creation_code, identify_release
from chainkit.contracts.comparison import Comparison, code_words, compared
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord, RecordedParameters
from chainkit.contracts.interface import render_call, shipped_interface
from chainkit.contracts.parameters import Parameters
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.errors import MalformedData
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import ADDRESS_LENGTH, Log

_UPGRADED: Final = keccak256(b"Upgraded(address)")
_ROLE_GRANTED: Final = keccak256(b"RoleGranted(bytes32,address,address)")
_ROLE_TOPICS: Final = 4
_PROXY_ARGUMENTS: Final = ("address", "bytes")
_ALL_KNOWN: Final = "all known releases"
_NO_ROLES: Final = "held by nobody"


@dataclass(frozen=True, slots=True)
class Creation:
    """One mined transaction that created a contract."""

    address: bytes
    """20 bytes: the address of the created contract."""
    block: int
    """The height of the block with the transaction."""
    sender: bytes
    """20 bytes."""
    data: bytes
    """Creation code and ABI-encoded arguments."""

    def words(self) -> str:
        """Describe the creation so that people can compare two descriptions."""
        address, sender = to_checksum_address(self.address), to_checksum_address(self.sender)
        return f"{address} in block {self.block}, by {sender}, with {code_words(self.data)}"


def compare_creations(
    state: ContractState,
    record: DeploymentRecord,
    council: Parameters | RecordedParameters | None,
) -> Iterator[Comparison]:
    """Compare how each contract was created with the transactions that the package would send.

    The first owner and administrators are compared if the record has parameters, else shown. None
    of them may be the deployer, unless the record's parameters or ``council`` name its account.
    Implementations are left out: their code is compared, and nothing reads their own storage.
    """
    sequence = record.originator_sequence
    callers = encode(["address", "address"], list(record.payload_addresses))
    expected = _expected(sequence, sequence.name, record.deployer, callers)
    yield _comparison(sequence.name, expected, _fetch(state, sequence))
    for proxy in record.sequenced_logs:
        yield from _compare_proxy(state, record, proxy, council)
        yield _compare_history(state, proxy)
    yield from _compare_registry(state, record, council)


def _compare_registry(
    state: ContractState,
    record: DeploymentRecord,
    council: Parameters | RecordedParameters | None,
) -> Iterator[Comparison]:
    registry, given = record.node_registry, record.parameters
    found = _fetch(state, registry)
    first = found.data[-ADDRESS_LENGTH:] if found else b""
    owner = given.registry_owner if given else first
    expected = _expected(registry, registry.name, record.deployer, owner.rjust(32, b"\0"))
    yield _comparison(registry.name, expected, found)
    allowed = [each.registry_owner for each in (given, council) if each]
    yield _first(f"first owner of {registry.name}", first, record.deployer, allowed)


def _first(subject: str, account: bytes, deployer: bytes, allowed: Collection[bytes]) -> Comparison:
    words = to_checksum_address(account) if account else "unknown"
    if account == deployer and account not in allowed:
        return Comparison(subject, "not the deployer", f"the deployer {words}")
    return compared(subject, None, words)


def _compare_proxy(
    state: ContractState,
    record: DeploymentRecord,
    proxy: DeployedContract,
    council: Parameters | RecordedParameters | None,
) -> Iterator[Comparison]:
    found, code = _fetch(state, proxy), creation_code("SequencedLogProxy")
    arguments = found.data[len(code) :] if found else b""
    wanted, admin = None, b""
    try:
        implementation, call = decode(_PROXY_ARGUMENTS, arguments)
        arguments = encode(_PROXY_ARGUMENTS, [implementation, call])
        admin, got = _initialization(proxy.name, call)
    except (DecodingError, MalformedData):
        wanted, got = "a call to initialize", "another, or none"
    expected = _expected(proxy, "SequencedLogProxy", record.deployer, arguments)
    yield _comparison(f"{proxy.name}' proxy", expected, found)
    if record.parameters:
        bounds = record.parameters.payload_bounds[proxy.name]
        named = to_checksum_address(record.parameters.message_admin)
        data = shipped_interface(proxy.name).encode(
            "initialize", named, bounds.minimum, bounds.maximum
        )
        _, wanted = _initialization(proxy.name, data)
    yield compared(f"first call to {proxy.name}", wanted, got)
    allowed = [each.message_admin for each in (record.parameters, council) if each]
    yield _first(f"first administrator of {proxy.name}", admin, record.deployer, allowed)


def _compare_history(state: ContractState, proxy: DeployedContract) -> Comparison:
    """Compare the implementations that a proxy has run with the known releases.

    Code is read at the present block: an implementation that was made to destroy itself, and made
    again as a release at the same address, passes.
    """
    subject = f"implementations of {proxy.name} since block {proxy.block}"
    logs = list(_events(state, proxy, _UPGRADED))
    if any(len(log.topics) != 2 for log in logs):
        return Comparison(subject, _ALL_KNOWN, "an Upgraded event without an implementation")
    addresses = dict.fromkeys(log.topics[1][-ADDRESS_LENGTH:] for log in logs)
    unknown = [
        to_checksum_address(address)
        for address in addresses
        if identify_release(proxy.name, state.code(address)) is None
    ]
    got = f"unknown code at {', '.join(unknown)}" if unknown else _ALL_KNOWN
    return Comparison(subject, _ALL_KNOWN, got if addresses else "none")


def compare_roles(state: ContractState, proxy: DeployedContract) -> Comparison:
    """Compare the holders of roles that our contracts do not know; upgraded code may use the roles.

    No function lists a contract's roles: the holders are those accounts of the events that still
    hold the role.
    """
    known = ("RoleGranted", DEFAULT_ADMIN_ROLE)
    held: dict[str, None] = {}
    subject = f"roles of {proxy.name} that it does not know"
    for log in _events(state, proxy, _ROLE_GRANTED):
        if len(log.topics) != _ROLE_TOPICS:
            got = "a RoleGranted event without role and account"
            return Comparison(subject, _NO_ROLES, got)
        event = shipped_interface(proxy.name).decode_event(log)
        if event is None or (event[0], event[1]["role"]) == known:
            continue
        role, account = event[1]["role"], event[1]["account"]
        if state.ask(proxy.name, proxy.address, "hasRole", role, account):
            held[f"{to_checksum_address(account)} holds the role 0x{role.hex()}"] = None
    return Comparison(subject, _NO_ROLES, "; ".join(held) or _NO_ROLES)


def _events(state: ContractState, proxy: DeployedContract, topic: bytes) -> Iterator[Log]:
    """Yield the proxy's events since its creation, in ranges as wide as the endpoint gives."""
    wanted = LogFilter((proxy.address,), (topic,))
    for _, logs in logs_by_pieces(state.endpoint, proxy.block, state.block.number, wanted):
        yield from logs


def _initialization(name: str, call: bytes) -> tuple[bytes, str]:
    """Return the administrator that a call to `initialize` names, and the call in words."""
    arguments = shipped_interface(name).arguments("initialize", call)
    return bytes.fromhex(arguments["admin"][2:]), render_call("initialize", arguments)


def _expected(contract: DeployedContract, name: str, sender: bytes, arguments: bytes) -> Creation:
    data = creation_code(name) + arguments
    return Creation(contract.address, contract.block, sender, data)


def _comparison(what: str, expected: Creation, found: Creation | None) -> Comparison:
    got = found.words() if found else "no such transaction at this endpoint"
    return Comparison(f"creation of {what}", expected.words(), got)


def _fetch(state: ContractState, contract: DeployedContract) -> Creation | None:
    """Return the contract of a recorded transaction, None if it is not known or created nothing."""
    endpoint, hash_ = state.endpoint, "0x" + contract.transaction.hex()
    receipt = endpoint.receipt(contract.transaction)
    transaction = endpoint.transaction(contract.transaction)
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
