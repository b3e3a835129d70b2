"""The field of JSON-RPC for each column of a chain export, and the field's form."""

from __future__ import annotations

from typing import Any, Final

from chainkit.exports import tables
from chainkit_jobs.chain_export.json_rows import (
    ADDRESS,
    BYTES,
    FLAG,
    FRACTION,
    HASH,
    INT64,
    UINT64,
    UINT256,
    WEI,
    FieldForm,
    Row,
    RowReader,
    fixed,
    list_of,
    objects_of,
)

PLACE: Final = {
    "block_number": ("blockNumber", INT64),
    "block_hash": ("blockHash", HASH),
    "transaction_hash": ("transactionHash", HASH),
    "transaction_index": ("transactionIndex", INT64),
}

BLOCKS: Final = RowReader(
    tables.BLOCKS,
    {
        "number": ("number", INT64),
        "hash": ("hash", HASH),
        "parent_hash": ("parentHash", HASH),
        "sha3_uncles": ("sha3Uncles", HASH),
        "miner": ("miner", ADDRESS),
        "state_root": ("stateRoot", HASH),
        "transactions_root": ("transactionsRoot", HASH),
        "receipts_root": ("receiptsRoot", HASH),
        "logs_bloom": ("logsBloom", fixed(256)),
        "difficulty": ("difficulty", WEI),
        "gas_limit": ("gasLimit", INT64),
        "gas_used": ("gasUsed", INT64),
        "timestamp": ("timestamp", INT64),
        "extra_data": ("extraData", BYTES),
        "mix_hash": ("mixHash", HASH),
        "nonce": ("nonce", fixed(8)),
        "base_fee_per_gas": ("baseFeePerGas", WEI),
        "withdrawals_root": ("withdrawalsRoot", HASH),
        "blob_gas_used": ("blobGasUsed", INT64),
        "excess_blob_gas": ("excessBlobGas", INT64),
        "parent_beacon_block_root": ("parentBeaconBlockRoot", HASH),
        "requests_hash": ("requestsHash", HASH),
        "block_access_list_hash": ("blockAccessListHash", HASH),
        "slot_number": ("slotNumber", INT64),
    },
)

_ACCESS_LIST: Final = objects_of(
    {"address": ("address", ADDRESS), "storage_keys": ("storageKeys", list_of(HASH))}
)

_SIGNED_DELEGATIONS: Final = objects_of(
    {
        "chain_id": ("chainId", UINT256),
        "address": ("address", ADDRESS),
        "nonce": ("nonce", UINT64),
        "y_parity": ("yParity", INT64),
        "r": ("r", UINT256),
        "s": ("s", UINT256),
    }
)


def _authorizations(value: Any) -> list[Row]:
    # Some endpoints still write the parity as ``v``, its name in EIP-7702's drafts.
    return _SIGNED_DELEGATIONS.parse(  # type: ignore[no-any-return]
        [{"yParity": each.get("v")} | each for each in value]
    )


TRANSACTIONS: Final = RowReader(
    tables.TRANSACTIONS,
    PLACE
    | {
        "transaction_hash": ("hash", HASH),
        "type": ("type", INT64),
        "chain_id": ("chainId", WEI),
        "nonce": ("nonce", UINT64),
        "from_address": ("from", ADDRESS),
        "to_address": ("to", ADDRESS),
        "value": ("value", WEI),
        "input": ("input", BYTES),
        "gas_limit": ("gas", INT64),
        "gas_price": ("gasPrice", WEI),
        "max_fee_per_gas": ("maxFeePerGas", WEI),
        "max_priority_fee_per_gas": ("maxPriorityFeePerGas", WEI),
        "max_fee_per_blob_gas": ("maxFeePerBlobGas", WEI),
        "access_list": ("accessList", _ACCESS_LIST),
        "blob_versioned_hashes": ("blobVersionedHashes", list_of(HASH)),
        "authorization_list": (
            "authorizationList",
            FieldForm(_SIGNED_DELEGATIONS.expected, _authorizations),
        ),
        "v": ("v", WEI),
        "r": ("r", UINT256),
        "s": ("s", UINT256),
        "source_hash": ("sourceHash", HASH),
        "mint": ("mint", WEI),
        "is_system_transaction": ("isSystemTx", FLAG),
        "request_id": ("requestId", HASH),
        "ticket_id": ("ticketId", HASH),
        "refund_to": ("refundTo", ADDRESS),
        "max_refund": ("maxRefund", WEI),
        "submission_fee_refund": ("submissionFeeRefund", WEI),
        "l1_base_fee": ("l1BaseFee", WEI),
        "deposit_value": ("depositValue", WEI),
        "retry_to": ("retryTo", ADDRESS),
        "retry_value": ("retryValue", WEI),
        "retry_data": ("retryData", BYTES),
        "beneficiary": ("beneficiary", ADDRESS),
        "max_submission_fee": ("maxSubmissionFee", WEI),
    },
)

RECEIPTS: Final = RowReader(
    tables.RECEIPTS,
    PLACE
    | {
        "type": ("type", INT64),
        "status": ("status", INT64),
        "from_address": ("from", ADDRESS),
        "to_address": ("to", ADDRESS),
        "contract_address": ("contractAddress", ADDRESS),
        "gas_used": ("gasUsed", INT64),
        "cumulative_gas_used": ("cumulativeGasUsed", INT64),
        "effective_gas_price": ("effectiveGasPrice", WEI),
        "l1_fee": ("l1Fee", WEI),
        "l1_gas_used": ("l1GasUsed", WEI),
        "l1_gas_price": ("l1GasPrice", WEI),
        "l1_fee_scalar": ("l1FeeScalar", FRACTION),
        "l1_base_fee_scalar": ("l1BaseFeeScalar", INT64),
        "l1_blob_base_fee": ("l1BlobBaseFee", WEI),
        "l1_blob_base_fee_scalar": ("l1BlobBaseFeeScalar", INT64),
        "gas_used_for_l1": ("gasUsedForL1", INT64),
        "deposit_nonce": ("depositNonce", UINT64),
        "deposit_receipt_version": ("depositReceiptVersion", INT64),
    },
)

LOGS: Final = RowReader(
    tables.LOGS,
    PLACE
    | {
        "log_index": ("logIndex", INT64),
        "address": ("address", ADDRESS),
        "topics": ("topics", list_of(HASH)),
        "data": ("data", BYTES),
    },
)
