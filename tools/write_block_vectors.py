"""Writes tests/vectors/anvil_blocks.json: blocks with a transaction of every type, by anvil.

anvil is another implementation (alloy): it hashed the headers and built the roots. It does not give
the same bytes twice, so the file is written again only when a type is added.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import rlp
from eth_account.signers.local import LocalAccount

from chainkit.signatures import keccak256
from localnet.accounts import development_account
from localnet.anvil import Anvil

VECTORS: Final = Path(__file__).parent.parent / "tests" / "vectors" / "anvil_blocks.json"

_CHAIN: Final = 31337
_MANUAL: Final = ("--no-mining", "--order", "fifo", "--chain-id", str(_CHAIN))
_PRAGUE: Final = ("--hardfork", "prague")
_FEES: Final = {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9}
_GAS: Final = 200_000

# Reverts without data; else returns it in two logs, one without topics and one with two.
_RUNTIME: Final = bytes.fromhex("366007575f5ffd5b365f5f37365fa060026001365fa200")
_CREATION: Final = (
    bytes.fromhex(f"60{len(_RUNTIME):02x}600a5f3960{len(_RUNTIME):02x}5ff3") + _RUNTIME
)

_LEFT_OUT: Final = frozenset(
    {"blockHash", "blockNumber", "blockTimestamp", "logsBloom", "size", "totalDifficulty", "uncles"}
    | {"withdrawals", "transactions", "yParity", "transactionHash", "transactionIndex", "logIndex"}
    | {"removed", "blobGasPrice", "blobGasUsed", "gasPrice"}
)


def ethereum_block() -> dict[str, Any]:
    """Return a block of Prague with types 0, 1, 2 and 4, a creation and a failure."""
    sender, authority = development_account(0), development_account(5)
    log = _created(sender.address, 0)
    call = {"to": log, "gas": _GAS, "chainId": _CHAIN, "value": 0}
    access = [{"address": "0x" + log.hex(), "storageKeys": ["0x" + "01" * 32, "0x" + "02" * 32]}]
    delegation = authority.sign_authorization({"chainId": 0, "address": log, "nonce": 0})
    unsent: list[dict[str, Any]] = [
        {"data": _CREATION, "gas": _GAS, "value": 0, "gasPrice": 10**11, "chainId": _CHAIN},
        {**call, "data": b"legacy", "gasPrice": 10**11},
        {"to": log, "gas": _GAS, "value": 0, "data": b"for any chain", "gasPrice": 10**11},
        {**call, "data": b"2930", "gasPrice": 10**11, "accessList": access, "type": 1},
        {**call, "data": b"1559", **_FEES, "accessList": access, "type": 2},
        {**call, **_FEES, "type": 2},
        {**call, "data": b"7702", **_FEES, "authorizationList": [delegation], "type": 4},
    ]
    raw = [_signed(sender, nonce, fields) for nonce, fields in enumerate(unsent)]
    return _mined("anvil, Prague: types 0, 1, 2 and 4, a creation, a failure", _PRAGUE, raw)


def blob_block() -> dict[str, Any]:
    """Return a block of Prague with a blob transaction.

    Its transactions are left out: anvil 1.7.1 puts them into their trie with their blobs, which
    EIP-4844 forbids.
    """
    fields = {"to": b"\x22" * 20, "gas": _GAS, "chainId": _CHAIN, "value": 1, **_FEES, "type": 3}
    blob = b"\x11" + bytes(4096 * 32 - 1)
    raw = _signed(development_account(0), 0, fields | {"maxFeePerBlobGas": 10**10}, [blob])
    block = _mined("anvil, Prague: the receipt of a blob transaction", _PRAGUE, [raw])
    return {name: value for name, value in block.items() if name != "transactions"}


def optimism_block() -> dict[str, Any]:
    """Return a block of an OP-stack chain: deposits that create, mint and fail, and a transfer."""
    # anvil's pool holds one deposit of each sender: it gives all of them nonce 0.
    accounts = [development_account(number) for number in range(4)]
    creator, minter, failing = (bytes.fromhex(account.address[2:]) for account in accounts[:3])
    source = [keccak256(bytes([number])) for number in range(3)]
    log, gas, ether = _created(accounts[0].address, 0), _GAS.to_bytes(3, "big"), 10**18
    deposits = [
        [source[0], creator, b"", b"", b"", gas, b"", _CREATION],
        [source[1], minter, log, ether.to_bytes(8, "big"), b"", gas, b"", b"7e"],
        [source[2], failing, log, b"", b"", gas, b"", b""],
    ]
    transfer = {"to": log, "gas": _GAS, "value": 0, "data": b"1559", **_FEES, "chainId": _CHAIN}
    raw = ["0x7e" + rlp.encode(deposit).hex() for deposit in deposits]
    raw.append(_signed(accounts[3], 0, {**transfer, "type": 2}))
    options = ("--network", "optimism", "--hardfork", "isthmus")
    return _mined("anvil, OP-stack: deposits that create, mint and fail", options, raw)


def _signed(
    account: LocalAccount, nonce: int, fields: dict[str, Any], blobs: list[bytes] | None = None
) -> str:
    signed = account.sign_transaction({**fields, "nonce": nonce}, blobs=blobs)
    return "0x" + bytes(signed.raw_transaction).hex()


def _created(sender: str, nonce: int) -> bytes:
    return keccak256(rlp.encode([bytes.fromhex(sender[2:]), nonce]))[12:]


def _mined(name: str, options: Sequence[str], raw: Sequence[str]) -> dict[str, Any]:
    with Anvil(*_MANUAL, *options) as anvil:
        for transaction in raw:
            anvil.request("eth_sendRawTransaction", transaction)
        anvil.request("evm_mine")
        block = anvil.request("eth_getBlockByNumber", "0x1", True)
        receipts = anvil.request("eth_getBlockReceipts", "0x1")
    assert len(block["transactions"]) == len(receipts) == len(raw), block
    bloom = {"logsBloom": block["logsBloom"]}
    blobs = {"blobGasUsed": block["blobGasUsed"]}
    return {
        "name": name,
        "source": f"anvil {' '.join(options)}, by tools/write_block_vectors.py",
        "block": _kept(block) | bloom | blobs,
        "transactions": [_transaction(transaction) for transaction in block["transactions"]],
        "receipts": [
            {**_kept(receipt), "logs": [_kept(log) for log in receipt["logs"]]}
            for receipt in receipts
        ],
    }


def _transaction(transaction: dict[str, Any]) -> dict[str, Any]:
    # The gasPrice of a later type is the paid price, not the one that its sender signed.
    signed = transaction["type"] in ("0x0", "0x1")
    price = {"gasPrice": transaction["gasPrice"]} if signed else {}
    return _kept(transaction) | price


def _kept(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in _LEFT_OUT}


def main() -> None:
    """Write the file."""
    content = {"comment": __doc__, "cases": [ethereum_block(), blob_block(), optimism_block()]}
    VECTORS.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
