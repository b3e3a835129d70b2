"""The contracts that an indexer follows: which emit payloads, in which form, and who counts them.

Our own deployments have two contracts that draw from one sequence, under originator 0 (XIP-49
§3.2.1). Other deployments count per contract, under an originator id each, index their events'
arguments, or name groups by 16 bytes. The deployment record holds the form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from chainkit.contracts.deployment import (
    RECORD_FORMAT,
    DeploymentRecord,
    parse_deployment_record,
    record_subject,
)
from chainkit.documents.fields import Faults, Fields, read_json
from chainkit.errors import ConfigurationError
from chainkit.protocol.payload_contract import (
    EVENT_NAMES,
    EventLayout,
    PayloadContract,
    sparse_originators,
)
from chainkit.signatures import keccak256
from chainkit.types import ADDRESS_LENGTH, BLOCKCHAIN_ORIGINATOR_ID, HASH_LENGTH, TopicKind

_EVENT_KINDS: Final = {name: kind for kind, name in EVENT_NAMES.items()}
_EVENT: Final = re.compile(
    f"(?P<event>{'|'.join(_EVENT_KINDS)})"
    r"\(bytes(?P<length>16|32)(?P<identifier> indexed)?( [A-Za-z_$][\w$]*)?,"
    r" ?bytes(?! indexed\b)( [A-Za-z_$][\w$]*)?,"
    r" ?uint64(?P<sequence> indexed)?( [A-Za-z_$][\w$]*)?\)",
    re.ASCII,
)
_EXPECTED_EVENT: Final = (
    f"{' or '.join(_EVENT_KINDS)} with (bytes32 or bytes16, bytes, uint64), as Solidity declares it"
)
_EXPECTED_FUNCTION: Final = "a function without arguments, such as sequenceId()"
_FUNCTION: Final = re.compile(r"[A-Za-z_$][\w$]*\(\)", re.ASCII)
_NAME: Final = re.compile(r"[!-~]([ -~]*[!-~])?")
_SEQUENCE_IDS: Final = re.compile("counted|sparse")
_ORIGINATOR_ID: Final = re.compile("0|[1-9][0-9]{0,9}")

MAXIMUM_ORIGINATOR_ID: Final = 2**32 - 1
"""``originator_node_id`` is a uint32 (XIP-49 §3.2.1)."""

LAST_SELECTOR: Final = keccak256(b"last()")[:4]
"""OriginatorSequence's function: the last sequence id that was given out."""


@dataclass(frozen=True, slots=True)
class SequenceCounter:
    """A contract that returns the last sequence id that it gave out, as a uint64."""

    address: bytes
    """20 bytes."""
    selector: bytes
    """4 bytes of a function without arguments."""
    block: int
    """Height at which the contract was deployed: below, the counter is 0."""


@dataclass(frozen=True, slots=True)
class FollowedRegistry:
    """A node registry (XIP-49 §3.1.1) whose history is followed."""

    address: bytes
    """20 bytes."""
    block: int
    """Height at which the registry was deployed."""
    chain_id: int
    genesis_hash: bytes
    """32 bytes: the hash of block 0 of the registry's chain, which may differ from the payloads'
    chain."""


@dataclass(frozen=True, slots=True)
class FollowedDeployment:
    """Everything that an indexer follows on one chain."""

    chain_id: int
    genesis_hash: bytes
    """32 bytes: hash of block 0."""
    contracts: tuple[PayloadContract, ...]
    counters: Mapping[int, SequenceCounter | None]
    """By originator id; None where no contract returns the number."""
    registry: FollowedRegistry | None = None

    @classmethod
    def of(cls, record: DeploymentRecord) -> Self:
        """Return what is to follow of a deployment of our own contracts."""
        sequence = record.originator_sequence
        kinds = (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)
        return cls(
            chain_id=record.chain_id,
            genesis_hash=record.genesis_hash,
            contracts=tuple(
                PayloadContract(contract.name, contract.address, contract.block, kind)
                for contract, kind in zip(record.sequenced_logs, kinds, strict=True)
            ),
            counters={
                BLOCKCHAIN_ORIGINATOR_ID: SequenceCounter(
                    sequence.address, LAST_SELECTOR, sequence.block
                )
            },
            registry=node_registry_of(record),
        )

    @property
    def first_block(self) -> int:
        """The height below which no payload was posted."""
        return min(contract.block for contract in self.contracts)

    @property
    def originator_ids(self) -> tuple[int, ...]:
        """Those that the contracts post under, in rising order."""
        return tuple(sorted({contract.originator_id for contract in self.contracts}))

    @property
    def sparse_originator_ids(self) -> frozenset[int]:
        """Those whose sequence ids do not count up by one."""
        return sparse_originators(self.contracts)

    def contracts_by_kind(self, subject: str) -> Mapping[TopicKind, PayloadContract]:
        """Return the one contract of messages and the one of identity updates.

        For everyone who publishes, and for readers who order published envelopes: today's clients
        name the commits of a group by originator 0. Raises ConfigurationError with the record as
        its subject where the record lists other contracts.
        """
        found: dict[TopicKind, PayloadContract] = {}
        for kind, event in EVENT_NAMES.items():
            posting = [contract for contract in self.contracts if contract.kind is kind]
            if len(posting) != 1:
                expected = f"one contract that emits {event}"
                got = ", ".join(contract.name for contract in posting) or "none"
                raise ConfigurationError(subject, expected, got, "payload_contracts")
            [found[kind]] = posting
        messages = found[TopicKind.GROUP_MESSAGE]
        if messages.originator_id != BLOCKCHAIN_ORIGINATOR_ID:
            expected = f"{BLOCKCHAIN_ORIGINATOR_ID}, by which clients name commits"
            path = f"originator_id of {messages.name}"
            raise ConfigurationError(subject, expected, messages.originator_id, path)
        return found

    def registry_here(self, subject: str) -> FollowedRegistry:
        """Return the registry on the payloads' chain.

        Raises ConfigurationError with the record as its subject where there is no registry, or it
        is on another chain.
        """
        if self.registry is None:
            raise ConfigurationError(subject, "a registry to ask", "none", "node_registry")
        if self.registry.genesis_hash != self.genesis_hash:
            expected = "a registry on the chain of --rpc"
            got = f"one on chain {self.registry.chain_id}"
            raise ConfigurationError(subject, expected, got, "node_registry")
        return self.registry


def read_followed_deployment(path: Path) -> FollowedDeployment:
    """Read from a deployment record what there is to follow.

    Raises ConfigurationError that names the file and every field which cannot be used.
    """
    subject = record_subject(path)
    return parse_followed_deployment(read_json(path, subject), subject)


def parse_followed_deployment(content: Any, subject: str) -> FollowedDeployment:
    """Build a deployment from a record's JSON: of our own contracts, or with ``payload_contracts``.

    ``deployments/README.md`` has the format. Raises ConfigurationError that names every unusable
    field; in a record of our own contracts, only the first unusable field that deploying wrote.
    """
    fields, faults = Fields(content, subject), Faults(subject)
    if fields.has("payload_contracts"):
        deployment = _listed(fields, faults)
    else:
        deployment = FollowedDeployment.of(parse_deployment_record(content, subject))
    if fields.has("node_registry"):
        deployment = replace(deployment, registry=_registry(fields, faults, deployment))
    faults.raise_all()
    return deployment


def read_recorded_deployment(path: Path) -> DeploymentRecord | FollowedDeployment:
    """Read a record of either kind, with all its content, for commands that take both kinds.

    Raises ConfigurationError as ``read_followed_deployment`` does.
    """
    subject = record_subject(path)
    content = read_json(path, subject)
    if Fields(content, subject).has("payload_contracts"):
        return parse_followed_deployment(content, subject)
    return parse_deployment_record(content, subject)


def node_registry_of(record: DeploymentRecord | FollowedDeployment) -> FollowedRegistry:
    """Return the registry on the chain of a record of either kind.

    Raises ConfigurationError where there is none, or elsewhere.
    """
    if isinstance(record, FollowedDeployment):
        return record.registry_here("deployment record")
    registry = record.node_registry
    place = registry.address, registry.block
    return FollowedRegistry(*place, record.chain_id, record.genesis_hash)


def payload_contract_content(contract: PayloadContract) -> dict[str, Any]:
    """Return a contract as a record lists it under ``payload_contracts``."""
    return {
        "name": contract.name,
        "address": f"0x{contract.address.hex()}",
        "block": contract.block,
        "originator_id": contract.originator_id,
        "event": f"{EVENT_NAMES[contract.kind]}{contract.layout}",
        "sequence_ids": "sparse" if contract.is_sparse else "counted",
    }


def parse_payload_contracts(content: Any, subject: str) -> tuple[PayloadContract, ...]:
    """Build the contracts of a list of what ``payload_contract_content`` returns.

    Raises ConfigurationError that names every field which cannot be used.
    """
    fields, faults = Fields({"payload_contracts": content}, subject), Faults(subject)
    contracts = _payload_contracts(fields, faults)
    if not len(faults):
        _check_contracts(contracts, faults)
    faults.raise_all()
    return contracts


def _listed(fields: Fields, faults: Faults) -> FollowedDeployment:
    if (version := faults.read(RECORD_FORMAT, fields.integer, "format")) != RECORD_FORMAT:
        faults.add(RECORD_FORMAT, version, "format")
    if fields.has("contracts"):
        faults.add("no such field beside payload_contracts", "one", "contracts")
    before = len(faults)
    contracts = _payload_contracts(fields, faults)
    section = faults.read(None, fields.inner, "counters")
    counters = {} if section is None else _counters(section, faults)
    # Fields that depend on each other are checked only where all of them could be read.
    if len(faults) == before:
        _check_contracts(contracts, faults)
        _check_originators(contracts, counters, faults)
    return FollowedDeployment(
        chain_id=faults.read(0, fields.integer, "chain_id"),
        genesis_hash=faults.read(b"", fields.bytes, "genesis_hash", HASH_LENGTH),
        contracts=contracts,
        counters=counters,
    )


def _payload_contracts(fields: Fields, faults: Faults) -> tuple[PayloadContract, ...]:
    elements = faults.read([], fields.elements, "payload_contracts")
    read = [_payload_contract(value, path, faults) for value, path in elements]
    return tuple(contract for contract in read if contract is not None)


def _payload_contract(value: Any, path: str, faults: Faults) -> PayloadContract | None:
    fields = faults.read(None, Fields, value, faults.subject, path)
    if fields is None:
        return None
    name = faults.read(None, fields.matching, "name", _NAME, "a name of printable characters")
    address = faults.read(b"", fields.bytes, "address", ADDRESS_LENGTH)
    block = faults.read(0, fields.integer, "block")
    originator_id = faults.read(0, fields.integer, "originator_id", MAXIMUM_ORIGINATOR_ID)
    event = faults.read(None, fields.matching, "event", _EVENT, _EXPECTED_EVENT)
    is_sparse = fields.has("sequence_ids") and _is_sparse(fields, faults)
    if name is None or event is None:
        return None
    layout = EventLayout(
        int(event["length"]), event["identifier"] is not None, event["sequence"] is not None
    )
    return PayloadContract(
        name[0], address, block, _EVENT_KINDS[event["event"]], originator_id, layout, is_sparse
    )


def _is_sparse(fields: Fields, faults: Faults) -> bool:
    expected = "counted, or sparse where ids have gaps or come in any order"
    found = faults.read(None, fields.matching, "sequence_ids", _SEQUENCE_IDS, expected)
    return found is not None and found[0] == "sparse"


def _counters(section: Fields, faults: Faults) -> dict[int, SequenceCounter | None]:
    counters: dict[int, SequenceCounter | None] = {}
    for name in section.names():
        if not _ORIGINATOR_ID.fullmatch(name) or int(name) > MAXIMUM_ORIGINATOR_ID:
            faults.add("an originator id as its name", repr(name), section.path(name))
        elif section.is_null(name):
            counters[int(name)] = None
        elif (fields := faults.read(None, section.inner, name)) is not None:
            function = faults.read(None, fields.matching, "function", _FUNCTION, _EXPECTED_FUNCTION)
            counters[int(name)] = SequenceCounter(
                address=faults.read(b"", fields.bytes, "address", ADDRESS_LENGTH),
                selector=b"" if function is None else keccak256(function[0].encode())[:4],
                block=faults.read(0, fields.integer, "block"),
            )
    return counters


def _check_contracts(contracts: Sequence[PayloadContract], faults: Faults) -> None:
    if not contracts:
        faults.add("at least one contract", "none", "payload_contracts")
    for what, values in (
        ("name", [contract.name for contract in contracts]),
        ("address", [f"0x{contract.address.hex()}" for contract in contracts]),
    ):
        for value, count in Counter(values).items():
            if count > 1:
                faults.add(f"each {what} once", f"{value} {count} times", "payload_contracts")


def _check_originators(
    contracts: Sequence[PayloadContract],
    counters: Mapping[int, SequenceCounter | None],
    faults: Faults,
) -> None:
    posting = Counter(contract.originator_id for contract in contracts)
    addresses = {contract.address for contract in contracts}
    sparse = sparse_originators(contracts)
    for originator_id, count in posting.items():
        path = f"counters.{originator_id}"
        if originator_id in sparse and (count > 1 or counters.get(originator_id) is not None):
            # A counter proves nothing where ids have gaps, and two contracts' ids may be the same.
            got = f"{count} contracts" if count > 1 else "a counter"
            faults.add("one contract and null, because its sequence ids are sparse", got, path)
        elif originator_id not in counters:
            faults.add("a counter, or null where no contract tells the number", "nothing", path)
        elif count > 1 and (
            (counter := counters[originator_id]) is None or counter.address in addresses
        ):
            # Two contracts with counters of their own would use every sequence id twice (ADR 2).
            got = "null" if counter is None else "the counter of one of them"
            expected = f"a sequence that all {count} contracts of this originator draw from"
            faults.add(expected, got, path)
    for originator_id in counters.keys() - posting.keys():
        faults.add("an originator id of payload_contracts", originator_id, "counters")


def _registry(
    record: Fields, faults: Faults, deployment: FollowedDeployment
) -> FollowedRegistry | None:
    if record.is_null("node_registry"):
        return None
    fields = faults.read(None, record.inner, "node_registry")
    if fields is None:
        return None
    chain_id, genesis_hash = deployment.chain_id, deployment.genesis_hash
    if fields.has("chain_id") or fields.has("genesis_hash"):
        chain_id = faults.read(0, fields.integer, "chain_id")
        genesis_hash = faults.read(b"", fields.bytes, "genesis_hash", HASH_LENGTH)
    return FollowedRegistry(
        address=faults.read(b"", fields.bytes, "address", ADDRESS_LENGTH),
        block=faults.read(0, fields.integer, "block"),
        chain_id=chain_id,
        genesis_hash=genesis_hash,
    )
