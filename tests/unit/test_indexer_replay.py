from contextlib import suppress
from typing import Any

import pytest
import rlp
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.signatures import keccak256
from chainkit_indexer.replay.rebuild import read_transaction, rebuild_transaction

SECRET = b"\x42" * 32
SENDER = Account.from_key(SECRET).address
TO = "0x" + "11" * 20
ACCESS = [{"address": "0x" + "22" * 20, "storageKeys": ["0x" + "33" * 32, "0x" + "00" * 32]}]
CALL = {"nonce": 7, "gas": 90_000, "to": TO, "value": 5, "data": b"\x01\x02"}
LEGACY = CALL | {"gasPrice": 10**9}
FEES = {"maxFeePerGas": 3 * 10**9, "maxPriorityFeePerGas": 0}
AUTHORIZATION = Account.sign_authorization(
    {"chainId": 31337, "address": "0x" + "44" * 20, "nonce": 0}, SECRET
)
KINDS: dict[str, dict[str, Any]] = {
    "before EIP-155": LEGACY,
    "legacy": LEGACY | {"chainId": 31337},
    "access list": LEGACY | {"chainId": 31337, "accessList": ACCESS, "type": 1},
    "fee market": CALL | FEES | {"chainId": 31337, "accessList": ACCESS, "type": 2},
    "set code": CALL
    | FEES
    | {"chainId": 31337, "accessList": [], "authorizationList": [AUTHORIZATION], "type": 4},
}


def signed(transaction: dict[str, Any]) -> Any:
    return Account.sign_transaction(transaction, SECRET)


def answered(transaction: dict[str, Any]) -> dict[str, Any]:
    """What an endpoint answers to eth_getTransactionByHash."""
    done = signed(transaction)
    fields = {
        name: hex(value) if isinstance(value, int) else value for name, value in transaction.items()
    }
    fields |= {"input": "0x" + fields.pop("data").hex(), "hash": "0x" + done.hash.hex()}
    fields |= {"r": hex(done.r), "s": hex(done.s), "v": hex(done.v)}
    if "type" in fields:
        fields |= {"yParity": hex(done.v)}
    if "authorizationList" in fields:
        fields["authorizationList"] = [
            {
                "chainId": hex(each.chain_id),
                "address": "0x" + each.address.hex(),
                "nonce": hex(each.nonce),
                "yParity": hex(each.y_parity),
                "r": hex(each.r),
                "s": hex(each.s),
            }
            for each in transaction["authorizationList"]
        ]
    return fields


@pytest.mark.parametrize("kind", KINDS)
def test_rebuild__fields_of_each_type__are_the_signed_bytes(kind: str) -> None:
    done = signed(KINDS[kind])

    assert rebuild_transaction(answered(KINDS[kind])) == bytes(done.raw_transaction)


def test_rebuild__parity_under_its_older_name__is_understood() -> None:
    fields = answered(KINDS["fee market"])
    del fields["yParity"]

    assert rebuild_transaction(fields) == bytes(signed(KINDS["fee market"]).raw_transaction)


def test_rebuild__deployment__has_no_address() -> None:
    transaction = KINDS["fee market"] | {"to": ""}
    fields = answered(transaction) | {"to": None}

    assert rebuild_transaction(fields) == bytes(signed(transaction).raw_transaction)


@pytest.mark.parametrize("kind", ["0x3", "0x7e"])
def test_rebuild__type_that_cannot_be_sent_again__is_nothing(kind: str) -> None:
    assert rebuild_transaction(answered(KINDS["fee market"]) | {"type": kind}) is None


@pytest.mark.parametrize("missing", ["nonce", "input", "r", "accessList", "maxFeePerGas"])
def test_rebuild__field_missing__is_an_error(missing: str) -> None:
    fields = answered(KINDS["fee market"])
    del fields[missing]

    with pytest.raises(KeyError, match=missing):
        rebuild_transaction(fields)


@pytest.mark.parametrize("kind", KINDS)
def test_read__each_type__says_what_it_asks_for(kind: str) -> None:
    done = signed(KINDS[kind])

    found = read_transaction(bytes(done.raw_transaction))

    assert (found.hash, found.sender) == (bytes(done.hash), SENDER)
    assert found.chain_id == KINDS[kind].get("chainId")
    assert (found.nonce, found.gas, found.value, found.calldata) == (7, 90_000, 5, b"\x01\x02")
    assert found.to == bytes.fromhex(TO[2:])
    assert found.fee_per_gas == KINDS[kind].get("maxFeePerGas", 10**9)
    assert found.highest_cost == 90_000 * found.fee_per_gas + 5


def test_read__deployment__has_no_address() -> None:
    raw = bytes(signed(KINDS["legacy"] | {"to": ""}).raw_transaction)

    assert read_transaction(raw).to is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x02",
        b"\xc0",
        b"\x03" + rlp.encode([b""] * 14),
        b"\x02" + rlp.encode([b""] * 12),
        bytes(signed(KINDS["legacy"]).raw_transaction)[:-1],
        bytes(signed(KINDS["fee market"]).raw_transaction) + b"\x00",
    ],
)
def test_read__no_transaction__is_an_error(raw: bytes) -> None:
    with pytest.raises(MalformedData, match="transaction: expected"):
        read_transaction(raw)


@given(st.binary(max_size=200))
def test_read__any_bytes__reads_or_refuses(raw: bytes) -> None:
    with suppress(MalformedData):
        assert read_transaction(raw).hash == keccak256(raw)
