from decimal import Decimal
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedData, Unprovable
from chainkit.ethereum import recover_sender, signing_hash, transaction_bytes
from chainkit.signatures import SECP256K1_ORDER
from support.audit.execution_rows import Row, empty_transaction

uint64 = st.integers(0, 2**64 - 2)
wei = st.integers(0, 10**38 - 1)
gas = st.integers(0, 2**63 - 1)
addresses = st.binary(min_size=20, max_size=20)
hashes = st.binary(min_size=32, max_size=32)
accounts = st.integers(1, SECP256K1_ORDER - 1).map(
    lambda secret: Account.from_key(secret.to_bytes(32, "big"))
)
access_lists = st.lists(st.tuples(addresses, st.lists(hashes, max_size=3)), max_size=3)

call = st.fixed_dictionaries(
    {"nonce": uint64, "gas": gas, "value": wei, "data": st.binary(max_size=80)}
)
chain = st.fixed_dictionaries({"chainId": st.integers(1, 2**62)})
price = st.fixed_dictionaries({"gasPrice": wei})
fees = st.fixed_dictionaries({"maxFeePerGas": wei, "maxPriorityFeePerGas": wei})
to = st.fixed_dictionaries({"to": addresses})
to_or_create = st.one_of(to, st.just({}))
access = st.fixed_dictionaries({"accessList": access_lists})
blobs = st.fixed_dictionaries(
    {
        "maxFeePerBlobGas": wei,
        "blobVersionedHashes": st.lists(
            st.binary(min_size=31, max_size=31).map(lambda tail: b"\1" + tail),
            min_size=1,
            max_size=4,
        ),
    }
)
delegations = st.fixed_dictionaries(
    {
        "authorizationList": st.lists(
            st.tuples(accounts, st.integers(0, 2**62), addresses, st.integers(0, 2**64 - 1)),
            min_size=1,
            max_size=3,
        )
    }
)


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(
        lambda given: {key: value for part in given for key, value in part.items()}
    )


transactions = st.one_of(
    merged(call, to_or_create, price),
    merged(call, to_or_create, price, chain),
    merged(st.just({"type": 1}), call, to_or_create, price, chain, access),
    merged(st.just({"type": 2}), call, to_or_create, fees, chain, access),
    merged(st.just({"type": 3}), call, to, fees, chain, access, blobs),
    merged(st.just({"type": 4}), call, to, fees, chain, access, delegations),
)

COLUMNS = {
    **{"nonce": "nonce", "gas": "gas_limit", "value": "value", "data": "input", "to": "to_address"},
    **{"chainId": "chain_id", "gasPrice": "gas_price", "maxFeePerGas": "max_fee_per_gas"},
    **{"maxPriorityFeePerGas": "max_priority_fee_per_gas", "type": "type"},
    **{"maxFeePerBlobGas": "max_fee_per_blob_gas", "blobVersionedHashes": "blob_versioned_hashes"},
}
DECIMALS = {
    "chain_id",
    "nonce",
    "value",
    "gas_price",
    "max_fee_per_gas",
    "max_priority_fee_per_gas",
}


def signed(account: LocalAccount, fields: dict[str, Any]) -> tuple[Row, bytes]:
    """The row of a transaction, and what eth-account makes of it."""
    row = empty_transaction(type=0)
    row.update({COLUMNS[name]: value for name, value in fields.items() if name in COLUMNS})
    unsigned = dict(fields)
    if "accessList" in fields:
        row["access_list"] = [
            {"address": address, "storage_keys": keys} for address, keys in fields["accessList"]
        ]
        unsigned["accessList"] = [
            {"address": "0x" + address.hex(), "storageKeys": ["0x" + key.hex() for key in keys]}
            for address, keys in fields["accessList"]
        ]
    if "authorizationList" in fields:
        unsigned["authorizationList"] = [
            authority.sign_authorization({"chainId": chain, "address": address, "nonce": nonce})
            for authority, chain, address, nonce in fields["authorizationList"]
        ]
        row["authorization_list"] = [
            {
                "chain_id": given.chain_id.to_bytes(32, "big"),
                "address": bytes(given.address),
                "nonce": Decimal(given.nonce),
                "y_parity": given.y_parity,
                "r": given.r.to_bytes(32, "big"),
                "s": given.s.to_bytes(32, "big"),
            }
            for given in unsigned["authorizationList"]
        ]
    answer = account.sign_transaction(unsigned)
    row["v"] = Decimal(answer.v)
    row["r"], row["s"] = answer.r.to_bytes(32, "big"), answer.s.to_bytes(32, "big")
    row.update({name: Decimal(row[name]) for name in DECIMALS if row[name] is not None})
    return row, bytes(answer.raw_transaction)


@given(accounts, transactions)
def test_transaction__that_eth_account_signed__has_its_bytes_and_sender(
    account: LocalAccount, fields: dict[str, Any]
) -> None:
    row, raw = signed(account, fields)

    assert transaction_bytes(row) == raw
    assert recover_sender(row) == bytes.fromhex(account.address[2:])


KEY = Account.from_key(b"\x11" * 32)
EIP_155 = {"nonce": 9, "gasPrice": 20, "gas": 21000, "to": b"\x35" * 20, "value": 1, "data": b""}
LEGACY, _ = signed(KEY, {**EIP_155, "chainId": 1})
FOR_ANY_CHAIN, _ = signed(KEY, EIP_155)
FEE_MARKET: dict[str, Any] = {
    **{"type": 2, "chainId": 1, "nonce": 9, "gas": 21000, "to": b"\x35" * 20, "value": 1},
    **{"data": b"", "maxFeePerGas": 20, "maxPriorityFeePerGas": 2, "accessList": []},
}
TYPE_2, _ = signed(KEY, FEE_MARKET)
TYPE_3, _ = signed(
    KEY, {**FEE_MARKET, "type": 3, "maxFeePerBlobGas": 1, "blobVersionedHashes": [b"\1" * 32]}
)
TYPE_4, _ = signed(KEY, {**FEE_MARKET, "type": 4, "authorizationList": [(KEY, 1, b"\x22" * 20, 0)]})
DEPOSIT = empty_transaction(
    **{"type": 0x7E, "source_hash": bytes(32), "from_address": b"\x11" * 20, "value": 5},
    **{"to_address": b"\x22" * 20, "gas_limit": 7, "input": b"", "nonce": 3},
)
UNSIGNED = empty_transaction(
    **{"type": 0x65, "chain_id": 42161, "from_address": b"\x11" * 20, "nonce": 3, "value": 5},
    **{"max_fee_per_gas": 9, "gas_limit": 7, "to_address": b"\x22" * 20, "input": b"x"},
)
INTERNAL = empty_transaction(**{"type": 0x6A, "chain_id": 42161, "input": b"\x6b\xf6\xa4\x2d"})


@pytest.mark.parametrize(
    ("row", "name"),
    [
        *(
            (LEGACY, name)
            for name in ("nonce", "gas_price", "gas_limit", "value", "input", "v", "r", "s")
        ),
        *(
            (TYPE_2, name)
            for name in ("chain_id", "max_fee_per_gas", "max_priority_fee_per_gas", "access_list")
        ),
        *(
            (TYPE_3, name)
            for name in ("to_address", "max_fee_per_blob_gas", "blob_versioned_hashes")
        ),
        *((TYPE_4, name) for name in ("to_address", "authorization_list")),
        *(
            (DEPOSIT, name)
            for name in ("source_hash", "from_address", "value", "gas_limit", "input")
        ),
        *((UNSIGNED, name) for name in ("chain_id", "from_address", "max_fee_per_gas")),
        *((INTERNAL, name) for name in ("chain_id", "input")),
    ],
)
def test_transaction__null_that_its_type_has__names_the_column(row: Row, name: str) -> None:
    with pytest.raises(Unprovable, match=rf"transaction 3 of block 7: .*null \(column {name}\)"):
        transaction_bytes({**row, name: None})


@pytest.mark.parametrize("type_", [5, 0x63, 0x67, 0x6B, 0x78, 255, 256, -1])
def test_transaction__of_an_unknown_type__is_unprovable_and_says_the_type(type_: int) -> None:
    row = {**TYPE_2, "type": type_}

    for told in (transaction_bytes, recover_sender, signing_hash):
        with pytest.raises(Unprovable, match=rf"got {type_:#x} \(column type\)"):
            told(row)


@pytest.mark.parametrize(
    ("row", "name", "value"),
    [
        (LEGACY, "max_fee_per_gas", 1),
        (LEGACY, "access_list", [{"address": bytes(20), "storage_keys": []}]),
        (TYPE_2, "gas_price", Decimal(1)),
        (TYPE_2, "blob_versioned_hashes", [bytes(32)]),
        (TYPE_2, "mint", Decimal(1)),
        (DEPOSIT, "v", Decimal(27)),
        (DEPOSIT, "r", b"\1" * 32),
        (INTERNAL, "source_hash", b"\1" * 32),
        (UNSIGNED, "is_system_transaction", True),
    ],
)
def test_transaction__column_that_its_type_has_not__is_refused(
    row: Row, name: str, value: object
) -> None:
    with pytest.raises(MalformedData, match=rf"null for type 0x.*column {name}"):
        transaction_bytes({**row, name: value})


def test_transaction__zeros_where_its_type_has_nothing__is_the_same() -> None:
    zeros = {"gas_price": Decimal(0), "v": Decimal(0), "r": bytes(32), "s": bytes(32)}

    assert transaction_bytes({**DEPOSIT, **zeros}) == transaction_bytes(DEPOSIT)


@pytest.mark.parametrize(
    "row",
    [{**LEGACY, "chain_id": None}, FOR_ANY_CHAIN, TYPE_2, TYPE_3, TYPE_4, DEPOSIT, UNSIGNED],
)
def test_transaction__any_other_value__gives_other_bytes(row: Row) -> None:
    place = {"block_number", "transaction_index", "type"}
    unsaid = {"nonce"} if row is DEPOSIT else set()
    told = {name: value for name, value in row.items() if value is not None}
    for name in told.keys() - place - unsaid:
        other = {**row, name: _other(told[name])}
        assert transaction_bytes(other) != transaction_bytes(row), name


def _other(value: Any) -> Any:
    if isinstance(value, list):
        return [*value, *value] if value else [{"address": bytes(20), "storage_keys": []}]
    if isinstance(value, bytes):
        return bytes([*value[:-1], value[-1] ^ 1]) if value else b"x"
    return value + 2


@pytest.mark.parametrize(
    ("chain_id", "is_right"), [(Decimal(1), True), (None, True), (Decimal(2), False)]
)
def test_transaction__legacy_chain_id__must_be_the_signed_one(
    chain_id: Decimal | None, is_right: bool
) -> None:
    row = {**LEGACY, "chain_id": chain_id}
    if is_right:
        assert transaction_bytes(row) == transaction_bytes(LEGACY)
        return
    with pytest.raises(MalformedData, match=r"expected 1, got 2 \(column chain_id\)"):
        transaction_bytes(row)


def test_sender__legacy_for_any_chain__is_recovered_whatever_the_chain() -> None:
    for chain_id in (None, Decimal(1), Decimal(10)):
        row = {**FOR_ANY_CHAIN, "chain_id": chain_id}
        assert recover_sender(row) == bytes.fromhex(KEY.address[2:])


def test_signing_hash__of_the_example_in_eip_155__is_the_published_one() -> None:
    row = empty_transaction(
        **{"type": 0, "nonce": 9, "gas_price": 20 * 10**9, "gas_limit": 21000, "value": 10**18},
        **{"to_address": b"\x35" * 20, "input": b"", "v": 37},
    )

    digest = "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"
    assert signing_hash(row).hex() == digest


@pytest.mark.parametrize(
    ("row", "v", "expected"),
    [
        *((LEGACY, v, "27, 28 or from 35") for v in (0, 1, 26, 29, 34)),
        *((TYPE_2, v, "0 or 1") for v in (2, 27, 28, 37)),
    ],
)
def test_sender__v_of_another_convention__is_refused(row: Row, v: int, expected: str) -> None:
    with pytest.raises(MalformedData, match=rf"expected {expected}, got {v} \(column v\)"):
        recover_sender({**row, "v": Decimal(v)})


def test_sender__high_s_twin__is_refused() -> None:
    s = SECP256K1_ORDER - int.from_bytes(TYPE_2["s"], "big")
    twin = {**TYPE_2, "v": 1 - TYPE_2["v"], "s": s.to_bytes(32, "big")}

    with pytest.raises(InvalidSignature, match=r"transaction 3 of block 7: .*a high S"):
        recover_sender(twin)


@pytest.mark.parametrize("name", ["nonce", "value", "gas_limit", "chain_id"])
def test_sender__of_other_fields_than_were_signed__is_another(name: str) -> None:
    assert recover_sender({**TYPE_2, name: TYPE_2[name] + 1}) != recover_sender(TYPE_2)


def test_sender__of_what_nobody_signs__is_what_the_hash_commits_to() -> None:
    assert recover_sender(DEPOSIT) == recover_sender(UNSIGNED) == b"\x11" * 20
    assert recover_sender(INTERNAL).hex() == "00000000000000000000000000000000000a4b05"


@pytest.mark.parametrize(("r", "s"), [(bytes(31), bytes(32)), (bytes(32), bytes(33))])
def test_sender__signature_of_other_lengths__is_refused(r: bytes, s: bytes) -> None:
    with pytest.raises(MalformedData, match=r"expected 32 bytes, got 3[13] bytes"):
        recover_sender({**TYPE_2, "r": r, "s": s})
    with pytest.raises(MalformedData, match=r"expected 32 bytes, got 3[13] bytes"):
        transaction_bytes({**TYPE_2, "r": r, "s": s})


@pytest.mark.parametrize(
    ("row", "name", "value"),
    [
        (TYPE_2, "access_list", [{"address": bytes(19), "storage_keys": []}]),
        (TYPE_2, "access_list", [{"address": bytes(20), "storage_keys": [bytes(31)]}]),
        (TYPE_2, "access_list", [{"address": bytes(20)}]),
        (TYPE_2, "access_list", 7),
        (TYPE_3, "blob_versioned_hashes", [bytes(33)]),
        (TYPE_4, "authorization_list", [{**TYPE_4["authorization_list"][0], "nonce": -1}]),
        (TYPE_4, "authorization_list", [{**TYPE_4["authorization_list"][0], "r": bytes(33)}]),
        (DEPOSIT, "is_system_transaction", 1),
        (LEGACY, "to_address", b""),
    ],
)
def test_transaction__value_that_is_none_of_its_column__names_the_column(
    row: Row, name: str, value: object
) -> None:
    with pytest.raises(MalformedData, match=rf"transaction 3 of block 7: .*\(column {name}\)"):
        transaction_bytes({**row, name: value})
