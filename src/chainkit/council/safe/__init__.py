"""The Safe multisig: its signed hashes, its signatures, its releases, and a Safe at a block.

All modules but ``account`` are pure; import ``account`` from its own module, as it asks an
endpoint.
"""

from chainkit.council.safe.execution import Execution, Outcome, find_execution, parse_exec_calldata
from chainkit.council.safe.multi_send import InnerCall, decode_batch, encode_batch
from chainkit.council.safe.releases import KnownContract, identify, known_contracts, known_versions
from chainkit.council.safe.signatures import (
    approval,
    as_eth_sign,
    check_signatures,
    contract_signature,
    has_contract_form,
    is_of_contract,
    pack,
    recover_owner,
    signer_of,
)
from chainkit.council.safe.transaction import Operation, SafeTransaction

__all__ = [
    "Execution",
    "InnerCall",
    "KnownContract",
    "Operation",
    "Outcome",
    "SafeTransaction",
    "approval",
    "as_eth_sign",
    "check_signatures",
    "contract_signature",
    "decode_batch",
    "encode_batch",
    "find_execution",
    "has_contract_form",
    "identify",
    "is_of_contract",
    "known_contracts",
    "known_versions",
    "pack",
    "parse_exec_calldata",
    "recover_owner",
    "signer_of",
]
