from decimal import Decimal
from typing import Any

import pytest

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum import header_bytes
from support.audit.execution_rows import block_row
from support.vectors import load

AMSTERDAM = load("amsterdam_blocks")["cases"][0]["block"] | {"number": "0x3"}
APPENDED = [
    "base_fee_per_gas",
    "withdrawals_root",
    "blob_gas_used",
    "excess_blob_gas",
    "parent_beacon_block_root",
    "requests_hash",
    "block_access_list_hash",
    "slot_number",
]
NOT_IN_THE_HEADER = {"hash", "transaction_count"}
ALWAYS = [name for name in block_row(AMSTERDAM) if name not in {*APPENDED, *NOT_IN_THE_HEADER}]


def header(**columns: Any) -> dict[str, Any]:
    return {**block_row(AMSTERDAM), **columns}


@pytest.mark.parametrize("kept", range(len(APPENDED) + 1))
def test_header__of_each_hardfork__has_the_first_columns_only(kept: int) -> None:
    older = header(**dict.fromkeys(APPENDED[kept:]))
    lengths = [len(header_bytes(header(**dict.fromkeys(APPENDED[n:])))) for n in range(kept + 1)]

    assert len(header_bytes(older)) == lengths[-1]
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize("gap", range(len(APPENDED) - 1))
def test_header__null_before_a_later_column__names_the_gap(gap: int) -> None:
    with pytest.raises(Unprovable, match=rf"block 3: .*got null \(column {APPENDED[gap]}\)"):
        header_bytes(header(**{APPENDED[gap]: None}))


@pytest.mark.parametrize("name", [name for name in ALWAYS if name != "number"])
def test_header__without_what_each_has__names_the_column(name: str) -> None:
    with pytest.raises(Unprovable, match=rf"block 3: .*got null \(column {name}\)"):
        header_bytes(header(**{name: None}))


@pytest.mark.parametrize("name", [*ALWAYS, *APPENDED])
def test_header__any_other_value__gives_other_bytes(name: str) -> None:
    value = header()[name]
    other = (
        value + 1
        if not isinstance(value, bytes)
        else bytes([*value[:-1], value[-1] ^ 1])
        if value
        else b"x"
    )

    assert header_bytes(header(**{name: other})) != header_bytes(header())


@pytest.mark.parametrize(
    ("column", "value", "expected", "got"),
    [
        ("miner", bytes(19), "20 bytes", "19 bytes"),
        ("logs_bloom", bytes(257), "256 bytes", "257 bytes"),
        ("nonce", bytes(7), "8 bytes", "7 bytes"),
        ("state_root", "0x" + "00" * 32, "32 bytes", "0x"),
        ("extra_data", "", "bytes", r" \(str\)"),
        ("gas_limit", -1, "an integer from 0", r"-1 \(int\)"),
        ("difficulty", Decimal("0.5"), "an integer from 0", r"0.5 \(Decimal\)"),
        ("difficulty", Decimal("NaN"), "an integer from 0", r"NaN \(Decimal\)"),
        ("difficulty", Decimal("Infinity"), "an integer from 0", r"Infinity \(Decimal\)"),
        ("gas_used", 1.0, "an integer from 0", r"1.0 \(float\)"),
        ("timestamp", True, "an integer from 0", r"True \(bool\)"),
    ],
)
def test_header__value_that_is_none_of_its_column__is_refused(
    column: str, value: object, expected: str, got: str
) -> None:
    with pytest.raises(MalformedData, match=f"block 3: expected {expected}, got {got}") as caught:
        header_bytes(header(**{column: value}))

    assert not isinstance(caught.value, Unprovable)
    assert caught.value.place == f"column {column}"
