"""Transactions of every type as endpoints answer them, each with its real hash.

Types 0 to 4 are anvil's, the deposit is that of Optimism's block 151539208, the internal one
Arbitrum One's of block 408889830, the others Nitro's test vectors: what a row keeps of them must
give the hash again.
"""

from typing import Any

from support.vectors import load

Answer = dict[str, Any]

NUMBER = 5
BLOCK_HASH = "0x" + "b5" * 32
SENDER = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"

_CALL = {
    "chainId": "0x7a69",
    "gas": "0x186a0",
    "from": SENDER,
    "to": "0x" + "11" * 20,
    "value": "0x1",
    "input": "0x",
}
_FEES = {"maxFeePerGas": "0xb2d05e00", "maxPriorityFeePerGas": "0x1", "accessList": []}

LEGACY = _CALL | {
    "type": "0x0",
    "nonce": "0x0",
    "gasPrice": "0xb2d05e00",
    "r": "0xe54ea657e526fa5a414c5348cc07c47f4180dd8ee7345fac3a81afdae96f5992",
    "s": "0x39ab8c2705f91e74f042bc6816e4e662f6af357206f409d4caf263ba980a081d",
    "v": "0xf4f5",
    "hash": "0x350056e6416ec50fdec2263fe532b8fff529602273b12e1350c7f12d201c5b7f",
}
ACCESS_LIST = _CALL | {
    "type": "0x1",
    "nonce": "0x1",
    "gasPrice": "0xb2d05e00",
    "accessList": [{"address": "0x" + "22" * 20, "storageKeys": ["0x" + "33" * 32]}],
    "r": "0x1ba6de7af5d416f5966159585701401f08d38ebb5bfe4de06d07f6d6d2eca526",
    "s": "0x77d064cb0f7f82f3fc0c4cbb4cf30347aada0f9c3288e2cf65ac1def53b1b25d",
    "yParity": "0x0",
    "v": "0x0",
    "hash": "0x9595ae13fb75a81c0931822b529ef308f91f00846ff5bc3169939dad3d291ed8",
}
DYNAMIC_FEE = (
    _CALL
    | _FEES
    | {
        "type": "0x2",
        "nonce": "0x2",
        # The price that was paid, not the one that was offered.
        "gasPrice": "0x2da7a993",
        "r": "0x51801c564cfb74f2b8a998f882e29087bcaac3cbff99a0a98bb773ac37af137",
        "s": "0x307a9afc93a162be3f52669c3bfdfb2392242501b037be675e2eff15b9b21802",
        "yParity": "0x1",
        "v": "0x1",
        "hash": "0x05f7266dea02b8cc9ba69d92ac4347674715f415207e7939b4a98d178f9d09b7",
    }
)
BLOB = (
    _CALL
    | _FEES
    | {
        "type": "0x3",
        "nonce": "0x0",
        "gasPrice": "0x3b9aca01",
        "maxFeePerBlobGas": "0x3b9aca00",
        "blobVersionedHashes": [
            "0x010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014"
        ],
        "r": "0x52c8dce577f33355d1f0badddc87040a6a6197fa374733ec3e6300b05246f482",
        "s": "0x6e6cbdf8363865b38ed8f37774598e706b7c6f118013d8e3fce19017b5777c56",
        "yParity": "0x0",
        "v": "0x0",
        "hash": "0x874a64b3a41efa03e38a678a8c08445f3b375fb1918b9fa08a8314fd96812d6f",
    }
)
SET_CODE = (
    _CALL
    | _FEES
    | {
        "type": "0x4",
        "nonce": "0x3",
        "gasPrice": "0x27f4bffd",
        "authorizationList": [
            {
                "chainId": "0x7a69",
                "address": "0x" + "44" * 20,
                "nonce": "0x4",
                "yParity": "0x0",
                "r": "0xca5b3f4c3429b14c2a2c7a553d91e283f559f33883091f6b19b7848afac968fa",
                "s": "0x33eee417db98f54f2dd19e034b64357c4c3c9d954cd207ad539ab9bda4c27326",
            }
        ],
        "r": "0xa8d2e42cd180fc8a795eacd22e6562a7748b5c33a262cbd7dd7175895eb72d7d",
        "s": "0x986fd630b0614e403097d25bf88c92a2755e7ff1f42964dddc81d7bf8065f25",
        "yParity": "0x0",
        "v": "0x0",
        "hash": "0x365abdf2770a069a6663b5d54a19d3302139c87e8e884d5cf124f1ee887698d1",
    }
)
OPTIMISM_DEPOSIT = {
    "type": "0x7e",
    "from": "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001",
    "gas": "0xf4240",
    "gasPrice": "0x0",
    "input": "0x3db6be2b0000146b000f79c50000000000000003000000006a04756f00000000017ec99d"
    "0000000000000000000000000000000000000000000000000000000020017d62"
    "0000000000000000000000000000000000000000000000000000000001d918f3"
    "af6d6abe101cdf792f420a962b62de02ba52726b1d21f5b9d43aff3c572b27cf"
    "0000000000000000000000006887246668a3b87f54deb3b94ba47a6f63f32985"
    "0000000000000000000000000190",
    "nonce": "0x2c28b94",
    "to": "0x4200000000000000000000000000000000000015",
    "value": "0x0",
    "v": "0x0",
    "r": "0x0",
    "s": "0x0",
    "sourceHash": "0xc912db3c7247e182b351c44e56b691ebcafbc8ada96c394ee5f5aa65d90b930e",
    "mint": "0x0",
    "depositReceiptVersion": "0x1",
    "hash": "0x8298e19f39ad1e9a2d670739614fafbbed1d5b3824319384f479168d2d8c8f95",
}
ARBITRUM_INTERNAL = {
    "type": "0x6a",
    "chainId": "0xa4b1",
    "from": "0x00000000000000000000000000000000000a4b05",
    "to": "0x00000000000000000000000000000000000a4b05",
    "gas": "0x0",
    "gasPrice": "0x0",
    "nonce": "0x0",
    "value": "0x0",
    "input": "0x6bf6a42d" + "0" * 64 + f"{0x16DDB27:064x}" + f"{0x185F29E6:064x}" + "0" * 64,
    "v": "0x0",
    "r": "0x0",
    "s": "0x0",
    "hash": "0x61d48ab94f7fccf48f4baa3903781053f932feb466474c037736e910d7ca2afe",
}

EVERY_TYPE = {
    "legacy": LEGACY,
    "access list": ACCESS_LIST,
    "dynamic fee": DYNAMIC_FEE,
    "blob": BLOB,
    "set code": SET_CODE,
    "deposit": OPTIMISM_DEPOSIT,
    "internal": ARBITRUM_INTERNAL,
    **{case["name"]: case["transaction"] for case in load("nitro_transactions")["cases"]},
}


def placed(transaction: Answer, index: int = 0) -> Answer:
    """A transaction as it stands in the block."""
    return transaction | {
        "blockHash": BLOCK_HASH,
        "blockNumber": hex(NUMBER),
        "transactionIndex": hex(index),
    }


def block_with(*transactions: Answer, **changes: Any) -> Answer:
    """A block after Prague that holds them."""
    return {
        "number": hex(NUMBER),
        "hash": BLOCK_HASH,
        "parentHash": "0x" + "b4" * 32,
        "sha3Uncles": "0x" + "01" * 32,
        "miner": "0x" + "02" * 20,
        "stateRoot": "0x" + "03" * 32,
        "transactionsRoot": "0x" + "04" * 32,
        "receiptsRoot": "0x" + "05" * 32,
        "logsBloom": "0x" + "06" * 256,
        "difficulty": "0x7",
        "gasLimit": "0x4000000000000",
        "gasUsed": "0x8",
        "timestamp": "0x6774866c",
        "extraData": "0x626f6f",
        "mixHash": "0x" + "09" * 32,
        "nonce": "0x000000000016a24e",
        "baseFeePerGas": "0xa",
        "withdrawalsRoot": "0x" + "0b" * 32,
        "blobGasUsed": "0x20000",
        "excessBlobGas": "0xc",
        "parentBeaconBlockRoot": "0x" + "0d" * 32,
        "requestsHash": "0x" + "0e" * 32,
        "blockAccessListHash": "0x" + "0f" * 32,
        "slotNumber": "0x10",
        "transactions": [placed(each, index) for index, each in enumerate(transactions)],
        "withdrawals": [],
    } | changes


def receipt_of(
    transaction: Answer, index: int = 0, logs: int = 0, first_log: int = 0, **more: Any
) -> Answer:
    """A receipt with so many logs, which are numbered from ``first_log`` on."""
    place = {
        "blockHash": BLOCK_HASH,
        "blockNumber": hex(NUMBER),
        "transactionHash": transaction["hash"],
        "transactionIndex": hex(index),
    }
    return (
        place
        | {
            "type": transaction["type"],
            "status": "0x1",
            "from": transaction["from"],
            "to": transaction["to"],
            "contractAddress": None,
            "gasUsed": "0x5208",
            "cumulativeGasUsed": hex(0x5208 * (index + 1)),
            "effectiveGasPrice": hex(2**70),
            "logs": [
                place
                | {
                    "address": "0x" + "77" * 20,
                    "topics": ["0x" + "88" * 32],
                    "data": "0x99",
                    "logIndex": hex(first_log + number),
                    "removed": False,
                }
                for number in range(logs)
            ],
        }
        | more
    )
