from typing import Any

import pytest
import rlp
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum import bloom_of_logs, receipt_bytes
from chainkit.ethereum.bloom import bloom_of
from chainkit.exports import tables

LOG = {
    **dict.fromkeys(tables.LOGS.names),
    **{"block_number": 7, "log_index": 5, "address": b"\x11" * 20},
    **{"topics": [b"\x22" * 32], "data": b"data"},
}
logs = st.lists(
    st.fixed_dictionaries(
        {
            "address": st.binary(min_size=20, max_size=20),
            "topics": st.lists(st.binary(min_size=32, max_size=32), max_size=4),
            "data": st.binary(max_size=40),
        }
    ),
    max_size=5,
)


def receipt(**columns: Any) -> dict[str, Any]:
    place = {"block_number": 7, "transaction_index": 3}
    told = {"type": 2, "status": 1, "cumulative_gas_used": 21000}
    return {**dict.fromkeys(tables.RECEIPTS.names), **place, **told, **columns}


@given(logs)
def test_bloom__of_any_logs__is_the_one_of_the_log_queries(logs: list[dict[str, Any]]) -> None:
    values = [value for log in logs for value in (log["address"], *log["topics"])]

    assert bloom_of_logs(logs) == bloom_of(values)


@given(logs, st.sampled_from([0, 1, 2, 3, 4, 0x7E, 0x6A]), st.sampled_from([0, 1]))
def test_receipt__of_any_logs__holds_them_in_their_order(
    logs: list[dict[str, Any]], type_: int, status: int
) -> None:
    encoded = receipt_bytes(receipt(type=type_, status=status), logs)

    prefix = b"" if type_ == 0 else bytes([type_])
    assert encoded.startswith(prefix)
    assert rlp.decode(encoded[len(prefix) :]) == [
        b"\1" * status,
        (21000).to_bytes(2, "big"),
        bloom_of_logs(logs),
        [[log["address"], log["topics"], log["data"]] for log in logs],
    ]


@pytest.mark.parametrize(
    ("nonce", "version", "extra"),
    [(None, None, []), (5, None, []), (5, 1, [b"\5", b"\1"]), (0, 1, [b"", b"\1"])],
    ids=["Bedrock", "Regolith", "Canyon", "Canyon, nonce 0"],
)
def test_receipt__of_a_deposit__has_its_nonce_with_a_version_only(
    nonce: int | None, version: int | None, extra: list[bytes]
) -> None:
    row = receipt(type=0x7E, deposit_nonce=nonce, deposit_receipt_version=version)

    assert rlp.decode(receipt_bytes(row, [])[1:])[4:] == extra


def test_receipt__version_without_a_nonce__is_unprovable() -> None:
    with pytest.raises(Unprovable, match=r"transaction 3 of block 7: .*column deposit_nonce"):
        receipt_bytes(receipt(type=0x7E, deposit_receipt_version=1), [])


@pytest.mark.parametrize("name", ["deposit_nonce", "deposit_receipt_version"])
def test_receipt__of_no_deposit_with_a_deposits_columns__is_refused(name: str) -> None:
    with pytest.raises(MalformedData, match=rf"null but for deposits, got 1 \(column {name}\)"):
        receipt_bytes(receipt(**{name: 1}), [])


@pytest.mark.parametrize("type_", [5, 0x78, 0x67, -1, 256])
def test_receipt__of_an_unknown_type__is_unprovable_and_says_the_type(type_: int) -> None:
    with pytest.raises(Unprovable, match=rf"got {type_:#x} \(column type\)"):
        receipt_bytes(receipt(type=type_), [])


@pytest.mark.parametrize("name", ["status", "cumulative_gas_used"])
def test_receipt__without_what_each_has__names_the_column(name: str) -> None:
    with pytest.raises(Unprovable, match=rf"null \(column {name}\)"):
        receipt_bytes(receipt(**{name: None}), [])


@pytest.mark.parametrize("status", [2, -1])
def test_receipt__status_that_is_none__is_refused(status: int) -> None:
    with pytest.raises(MalformedData, match=rf"expected 0 or 1, got {status} .*column status"):
        receipt_bytes(receipt(status=status), [])


@pytest.mark.parametrize(
    ("name", "value"), [("address", bytes(19)), ("topics", [bytes(31)]), ("data", "0x")]
)
def test_receipt__log_that_is_none__names_the_column_and_the_log(name: str, value: object) -> None:
    with pytest.raises(MalformedData, match=rf"log 5 of block 7: .*\(column {name}\)"):
        receipt_bytes(receipt(), [{**LOG, name: value}])


@pytest.mark.parametrize("name", ["address", "topics", "data"])
def test_receipt__log_without_what_each_has__is_unprovable(name: str) -> None:
    with pytest.raises(Unprovable, match=rf"log 5 of block 7: .*null \(column {name}\)"):
        receipt_bytes(receipt(), [{**LOG, name: None}])


def test_receipt__unproved_columns__change_nothing() -> None:
    row = receipt(gas_used=1, effective_gas_price=2, l1_fee=3, contract_address=bytes(20))

    assert receipt_bytes(row, [LOG]) == receipt_bytes(receipt(), [LOG])
