"""A bundle's page: one node, one trusted block, and the digests of its files.

A bundle is a folder with names that are always the same, so that none is ever read out of it::

    bundle.json           this page
    headers.rlp           RLP of every header from the first block needed to the trusted one
    transactions.jsonl    the transactions needed, each with its receipt and both inclusion proofs
    findings.jsonl        the audit's findings about the node, with what it served
    reports/ID.unsigned.pb, ID.pb    an UnsignedMisbehaviorReport, and a signed MisbehaviorReport,
                          for each finding that proves itself

The digests find damage. They do not protect against somebody who writes other ones: a verdict
depends only on data that follows from the trusted block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from chainkit.contracts.followed import parse_payload_contracts, payload_contract_content
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.documents.canonical import (
    Record,
    check_form,
    line_bytes,
    page_bytes,
    parse_object,
    short,
)
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.evidence.emission import EmittingContracts
from chainkit.signatures import PUBLIC_KEY_LENGTH
from chainkit.text.hexadecimal import hex0x
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockReference

BUNDLE_FORMAT: Final = 2
"""About our own contracts."""
LISTED_FORMAT: Final = 3
"""A format about other contracts, which the page describes. Older versions refuse this format."""

BUNDLE_NAME: Final = "bundle.json"
HEADERS_NAME: Final = "headers.rlp"
TRANSACTIONS_NAME: Final = "transactions.jsonl"
FINDINGS_NAME: Final = "findings.jsonl"
REPORTS_NAME: Final = "reports"
FILE_NAMES: Final = (FINDINGS_NAME, HEADERS_NAME, TRANSACTIONS_NAME)

INPUT_NAMES: Final = ("chain_manifest", "findings", "node_manifest", "summary")
"""The sources of a bundle; it contains the sha256 of each."""

_SUBJECT: Final = BUNDLE_NAME
_REGISTRY: Final = "NodeRegistry"
_LISTED: Final = "payload_contracts"
_DIGEST: Final = ("[0-9a-f]{64}", "64 hex digits")
_FIELDS: Final = (
    *("chain_id", "contracts", "files", "findings", "first_block", "format", "genesis_hash"),
    *("inputs", "left_out", "node_id", "proving_themselves", "registry_transactions"),
    *("reporter_public_key", "reporter_time_ns", "sha256", "tool", "trusted_block"),
)


@dataclass(frozen=True, slots=True)
class FileDigest:
    """A file of the bundle: its length in bytes, and its sha256 in hex."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """The content of ``bundle.json``. All of its fields are claims of the bundle's author."""

    tool: str
    """Name and version of the tool that wrote the bundle."""
    chain_id: int
    genesis_hash: bytes
    """32 bytes."""
    contracts: EmittingContracts
    node_registry: bytes
    """20 bytes."""
    node_id: int
    """The accused."""
    first_block: int
    """Height of the first header."""
    trusted_block: BlockReference
    """The last header: all proofs of the bundle depend on its hash."""
    registry_transactions: tuple[bytes, ...]
    """Hashes of the transactions that registered the node and changed its entry, in the chain's
    order."""
    findings: int
    proving_themselves: int
    """Findings for which there is a report."""
    inputs: Mapping[str, str]
    """sha256, in hex, of each of INPUT_NAMES."""
    reporter_time_ns: int
    """Nanoseconds since 1970 in each report; 0 where the reporter gave none."""
    reporter_public_key: bytes | None
    """65 bytes; None where the reports are unsigned."""
    left_out: tuple[str, ...]
    """A sentence for each block whose transactions the chain export cannot prove."""
    files: Mapping[str, FileDigest]
    """By name, for each of FILE_NAMES."""


def bundle_bytes(bundle: Bundle) -> bytes:
    """Serialize a bundle's own page, with the sha256 of its fields."""
    content = _content(bundle)
    return page_bytes(content | {"sha256": hashlib.sha256(line_bytes(content)).hexdigest()})


def parse_bundle(data: bytes) -> Bundle:
    """Read ``bundle.json``. Raises MalformedData unless it has the form of ``bundle_bytes``."""
    content = parse_object(data, _SUBJECT)
    listed = isinstance(content, dict) and content.get(_LISTED)
    fields = Record(content, _SUBJECT, (*_FIELDS, *([_LISTED] if listed else ())))
    expected = LISTED_FORMAT if listed else BUNDLE_FORMAT
    if fields.integer("format") != expected:
        raise MalformedData(_SUBJECT, f"format {expected}", fields.integer("format"))
    names = () if listed else SEQUENCED_LOGS
    named = fields.record("contracts", *names, _REGISTRY)
    addresses = [named.bytes(name, ADDRESS_LENGTH) for name in names]
    trusted = fields.record("trusted_block", "hash", "number")
    inputs = fields.record("inputs", *INPUT_NAMES)
    files = fields.record("files", *FILE_NAMES)
    bundle = Bundle(
        tool=fields.text("tool"),
        chain_id=fields.integer("chain_id"),
        genesis_hash=fields.bytes("genesis_hash", HASH_LENGTH),
        contracts=_listed(listed) if listed else EmittingContracts.own(*addresses),
        node_registry=named.bytes(_REGISTRY, ADDRESS_LENGTH),
        node_id=fields.integer("node_id", 2**32 - 1),
        first_block=fields.integer("first_block"),
        trusted_block=BlockReference(trusted.integer("number"), trusted.bytes("hash", HASH_LENGTH)),
        registry_transactions=tuple(
            each.bytes("value", HASH_LENGTH) for each in fields.elements("registry_transactions")
        ),
        findings=fields.integer("findings"),
        proving_themselves=fields.integer("proving_themselves"),
        inputs={name: inputs.text(name, *_DIGEST) for name in INPUT_NAMES},
        reporter_time_ns=fields.integer("reporter_time_ns", 2**64 - 1),
        reporter_public_key=(
            None
            if fields.is_null("reporter_public_key")
            else fields.bytes("reporter_public_key", PUBLIC_KEY_LENGTH)
        ),
        left_out=tuple(each.text("value") for each in fields.elements("left_out")),
        files={name: _digest(files.record(name, "bytes", "sha256")) for name in FILE_NAMES},
    )
    check_form(data, bundle_bytes(bundle), _SUBJECT)
    return bundle


def _listed(content: Any) -> EmittingContracts:
    try:
        return EmittingContracts(parse_payload_contracts(content, _SUBJECT), are_own=False)
    except ConfigurationError as error:
        raise MalformedData(_SUBJECT, _LISTED, short(str(error))) from error


def _digest(fields: Record) -> FileDigest:
    return FileDigest(fields.integer("bytes"), fields.text("sha256", *_DIGEST))


def _content(bundle: Bundle) -> dict[str, Any]:
    key = bundle.reporter_public_key
    contracts, registry = bundle.contracts, {_REGISTRY: hex0x(bundle.node_registry)}
    about: dict[str, Any] = {"format": BUNDLE_FORMAT, "contracts": contracts.described | registry}
    if not contracts.are_own:
        listed = list(map(payload_contract_content, contracts.contracts))
        about = {"format": LISTED_FORMAT, "contracts": registry, _LISTED: listed}
    return {
        **about,
        "tool": bundle.tool,
        "chain_id": bundle.chain_id,
        "genesis_hash": hex0x(bundle.genesis_hash),
        "node_id": bundle.node_id,
        "first_block": bundle.first_block,
        "trusted_block": {
            "number": bundle.trusted_block.number,
            "hash": hex0x(bundle.trusted_block.hash),
        },
        "registry_transactions": list(map(hex0x, bundle.registry_transactions)),
        "findings": bundle.findings,
        "proving_themselves": bundle.proving_themselves,
        "inputs": dict(bundle.inputs),
        "reporter_time_ns": bundle.reporter_time_ns,
        "reporter_public_key": None if key is None else hex0x(key),
        "left_out": list(bundle.left_out),
        "files": {
            name: {"bytes": file.bytes, "sha256": file.sha256}
            for name, file in bundle.files.items()
        },
    }
