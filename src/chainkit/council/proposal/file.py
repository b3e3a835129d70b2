"""The proposal's file: read, rebuilt from its reader's own files, and compared byte by byte.

Three fields are taken from it: targets with calldata, grounds, and nonce (with fees, for a plain
account). Everything else, even the names of arguments and the hashes, is made again and must be
equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.calls import Call
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.grounds import Grounds
from chainkit.council.proposal.proposal import Fees, Proposal
from chainkit.council.safe import SafeTransaction, is_of_contract
from chainkit.documents.canonical import Record, check_form, page_bytes, parse_object, short
from chainkit.documents.files import read_regular, replace_file, write_new
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.signatures import SIGNATURE_LENGTH
from chainkit.text.hexadecimal import hex0x

PROPOSAL_FORMAT: Final = 1

CONTRACTS: Final = "safe"
OWNERS: Final = "owners"
PLAIN: Final = "plain"
_KINDS: Final = {
    CONTRACTS: "a Safe's proposal about the contracts",
    OWNERS: "a change of the Safe's own owners",
    PLAIN: "a proposal of an account with a key",
}

_LARGEST: Final = 2**22
"""Bytes of a file: 4 MiB hold thousands of calls."""
_FIELDS: Final = (
    *("account", "calls", "chain_id", "fees", "format", "grounds", "hashes", "kind"),
    *("nonce", "signatures"),
)
_CALL_FIELDS: Final = ("arguments", "calldata", "contract", "function", "target")


def proposal_bytes(proposal: Proposal) -> bytes:
    """Serialize a proposal: the same one always gives the same bytes."""
    return page_bytes(proposal_content(proposal))


def proposal_content(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as its file's JSON holds it."""
    transaction, fees = proposal.transaction, proposal.fees
    return {
        "format": PROPOSAL_FORMAT,
        "kind": _kind(proposal),
        "chain_id": transaction.chain_id,
        "account": proposal.account,
        "nonce": transaction.nonce,
        "calls": [_call_content(call) for call in proposal.calls],
        "grounds": proposal.grounds.content(),
        "fees": fees
        and {
            "gas": str(fees.gas),
            "max_fee_per_gas": str(fees.max_fee_per_gas),
            "max_priority_fee_per_gas": str(fees.max_priority_fee_per_gas),
        },
        "hashes": {name: hex0x(value) for name, value in hashes(proposal).items()},
        "signatures": {
            signer: hex0x(signature) for signer, signature in proposal.signatures.items()
        },
    }


def hashes(proposal: Proposal) -> dict[str, bytes]:
    """Return the hashes that people compare, by the names that wallets show."""
    transaction = proposal.transaction
    found = {"grounds": proposal.grounds.digest}
    if isinstance(transaction, SafeTransaction):
        return found | {
            "domain": transaction.domain_hash,
            "message": transaction.message_hash,
            "safe_tx": transaction.hash,
        }
    return found | {"transaction": transaction.hash}


def parse_proposal(
    data: bytes,
    subject: str,
    record: DeploymentRecord,
    council: Council,
    changes_safe: bool = False,
) -> Proposal:
    """Rebuild a proposal from its file.

    ``changes_safe`` is the kind that the reader expects: a change of the Safe's own owners, or of
    the contracts. Raises MalformedData where anything in the file differs from the rebuilt
    proposal, and ConfigurationError where the proposal is of the other kind, for another chain or
    account, or calls another contract than the record's.
    """
    content = parse_object(data, subject)
    fields = Record(content, subject, _FIELDS)
    if fields.integer("format") != PROPOSAL_FORMAT:
        raise MalformedData(subject, f"format {PROPOSAL_FORMAT}", fields.integer("format"))
    _check_account(fields, subject, council, changes_safe)
    safe = council.account if changes_safe else None
    calls = [
        _call(each, f"{subject}, calls[{number}]", record, safe)
        for number, each in enumerate(_list(content["calls"], f"{subject}, calls"))
    ]
    proposal = Proposal.make(
        record,
        council,
        calls,
        Grounds.parse(content["grounds"], f"{subject}, grounds"),
        fields.integer("nonce"),
        None if fields.is_null("fees") else _fees(fields),
    )
    for signature in _signatures(content["signatures"], subject):
        proposal = proposal.signed(signature)
    for path, expected, got in _differences(proposal_content(proposal), content):
        raise MalformedData(f"{subject}, {path}", short(str(expected)), short(str(got)))
    check_form(data, proposal_bytes(proposal), subject)
    return proposal


def read_proposal(
    path: Path, record: DeploymentRecord, council: Council, changes_safe: bool = False
) -> Proposal:
    """Read a proposal's file; raises as ``parse_proposal`` does."""
    subject = f"proposal {path}"
    data = read_regular(path, subject, _LARGEST)
    return parse_proposal(data, subject, record, council, changes_safe)


def write_proposal_file(path: Path, proposal: Proposal, is_new: bool) -> None:
    """Write a proposal: a new file, or in one step over an earlier state of it.

    Raises ConfigurationError where the file cannot be written, a new one would replace a file, or
    the earlier one is a link or read-only.
    """
    write = write_new if is_new else replace_file
    write(path, proposal_bytes(proposal), f"proposal {path}")


def argument_content(value: Any) -> Any:
    """Return a decoded argument for JSON: bytes in hex, integers as decimal text."""
    if isinstance(value, bytes):
        return hex0x(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _kind(proposal: Proposal) -> str:
    if isinstance(proposal.transaction, AccountTransaction):
        return PLAIN
    return OWNERS if proposal.changes_safe else CONTRACTS


def _check_account(fields: Record, subject: str, council: Council, changes_safe: bool) -> None:
    for name, expected, got in (
        ("chain_id", council.chain_id, fields.integer("chain_id")),
        ("account", council.address, fields.text("account")),
    ):
        if got != expected:
            wanted = f"{name} {expected}, as your council file has it"
            raise ConfigurationError(subject, wanted, short(str(got)))
    kind = (OWNERS if changes_safe else CONTRACTS) if council.safe else PLAIN
    if fields.text("kind") != kind:
        place = "--owners is for them, and for them alone" if council.safe else "your council file"
        got = _KINDS.get(fields.text("kind"), short(fields.text("kind")))
        raise ConfigurationError(subject, _KINDS[kind], got, place)


def _call(content: Any, subject: str, record: DeploymentRecord, safe: bytes | None) -> Call:
    fields = Record(content, subject, _CALL_FIELDS)
    text = fields.text("target", "0x[0-9a-fA-F]{40}", "0x and 40 hex digits")
    target, calldata = bytes.fromhex(text[2:]), fields.bytes("calldata")
    if safe is not None and target == safe:
        return Call.read_of_safe(safe, calldata)
    return Call.read(record, target, calldata)


def _call_content(call: Call) -> dict[str, Any]:
    return {
        "contract": call.contract,
        "target": call.target_address,
        "function": call.function,
        "arguments": {name: argument_content(value) for name, value in call.arguments.items()},
        "calldata": hex0x(call.calldata),
    }


def _fees(fields: Record) -> Fees:
    names = ("gas", "max_fee_per_gas", "max_priority_fee_per_gas")
    inner = fields.record("fees", *names)
    amounts = [inner.text(name, "[0-9]{1,78}", "a decimal number") for name in names]
    return Fees(*(int(amount) for amount in amounts))


def _signatures(content: Any, subject: str) -> Iterator[bytes]:
    if not isinstance(content, Mapping):
        got = type(content).__name__
        raise MalformedData(f"{subject}, signatures", "an object", got)
    fields = Record(content, f"{subject}, signatures", list(content))
    for signer in content:
        signature = fields.bytes(signer)
        # A contract's is longer.
        yield signature if is_of_contract(signature) else fields.bytes(signer, SIGNATURE_LENGTH)


def _differences(
    expected: Mapping[str, Any], got: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for name in [*expected, *(name for name in got if name not in expected)]:
        place = f"{path}.{name}" if path else name
        wanted, found = expected.get(name), got.get(name)
        if wanted == found and (name in expected) == (name in got):
            continue
        if isinstance(wanted, Mapping) and isinstance(found, Mapping):
            yield from _differences(wanted, found, place)
        elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
            for number, pair in enumerate(zip(wanted, found, strict=True)):
                yield from _differences({str(number): pair[0]}, {str(number): pair[1]}, place)
        else:
            yield place, wanted, found


def _list(content: Any, subject: str) -> list[Any]:
    if not isinstance(content, list):
        raise MalformedData(subject, "a list", type(content).__name__)
    return content
