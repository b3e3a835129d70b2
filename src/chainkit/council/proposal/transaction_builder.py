"""A proposal for Safe's Transaction Builder: the same calls, for Safe's own interface.

The format and its checksum are Safe's own (safe-react-apps, `apps/tx-builder`): the file holds no
nonce and no signature, so the person who loads the file compares the SafeTx hash again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.council.proposal.council import Council
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe import InnerCall, SafeTransaction
from chainkit.errors import ConfigurationError
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x

FORMAT_VERSION: Final = "1.0"


def batch_file(proposal: Proposal, council: Council, created_ms: int) -> dict[str, Any]:
    """Return the batch file of a Safe's proposal, with its checksum.

    ``created_ms`` is a time in milliseconds since 1970. Raises ConfigurationError for a plain
    account's proposal.
    """
    transaction = proposal.transaction
    if council.safe is None or not isinstance(transaction, SafeTransaction):
        raise ConfigurationError("proposal", "one of a Safe", "one of a plain account")
    calls = transaction.inner_calls(council.safe.multi_send)
    return _batch(proposal, proposal.account, calls, created_ms)


def approval_file(proposal: Proposal, call: InnerCall, created_ms: int) -> dict[str, Any]:
    """Return the batch file by which another Safe, an owner, approves a proposal on the chain."""
    return _batch(proposal, "", [call], created_ms)


def _batch(
    proposal: Proposal, safe: str, calls: Iterable[InnerCall], created_ms: int
) -> dict[str, Any]:
    meta = {
        "name": proposal.grounds.reason,
        "description": f"nonce {proposal.nonce}, SafeTx hash 0x{proposal.hash.hex()}",
        "txBuilderVersion": "",
        "createdFromSafeAddress": safe,
        "createdFromOwnerAddress": "",
    }
    batch = {
        "version": FORMAT_VERSION,
        "chainId": str(proposal.transaction.chain_id),
        "createdAt": created_ms,
        "meta": meta,
        "transactions": [
            {
                "to": to_checksum_address(call.target),
                "value": "0",
                "data": hex0x(call.calldata),
                "contractMethod": None,
                "contractInputsValues": None,
            }
            for call in calls
        ],
    }
    return batch | {"meta": meta | {"checksum": checksum(batch)}}


def checksum(batch: dict[str, Any]) -> str:
    """Return the checksum of a batch file, whose name and present checksum do not count."""
    meta = {name: value for name, value in batch["meta"].items() if name != "checksum"}
    counted = batch | {"meta": meta | {"name": None}}
    return "0x" + keccak256(_serialized(counted).encode()).hex()


def _serialized(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_serialized, value))}]"
    if isinstance(value, dict):
        names = sorted(value)
        listed = json.dumps(names, separators=(",", ":"), ensure_ascii=False)
        return "{" + listed + "".join(f"{_serialized(value[name])}," for name in names) + "}"
    return json.dumps(value, ensure_ascii=False)
