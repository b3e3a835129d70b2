from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.exports import tables

SCHEMAS = {name: value for name, value in vars(tables).items() if isinstance(value, pa.Schema)}
PLACE = ["block_number", "block_hash", "transaction_hash", "transaction_index", "log_index"]
REQUIRED = {
    "BLOCKS": ["number", "hash", "parent_hash", "gas_used", "timestamp"],
    "TRANSACTIONS": [
        *("block_number", "block_hash", "transaction_hash", "transaction_index", "type", "nonce"),
        *("from_address", "value", "input", "gas_limit"),
    ],
    "RECEIPTS": [
        *("block_number", "block_hash", "transaction_hash", "transaction_index", "type", "status"),
        *("from_address", "gas_used", "cumulative_gas_used", "effective_gas_price"),
    ],
    "LOGS": tables.LOGS.names,
    "ENVELOPES": tables.ENVELOPES.names,
    "ANSWERED_ENVELOPES": tables.ANSWERED_ENVELOPES.names,
    "QUARANTINE": tables.QUARANTINE.names,
    "JOURNAL": [n for n in tables.JOURNAL.names if n not in ("envelope", "new_sequence_id")],
    "REGISTRY_UPDATES": tables.REGISTRY_UPDATES.names,
}


def example_of(field: pa.Field) -> Any:
    if pa.types.is_decimal(field.type):
        return Decimal(10**field.type.precision - 1)
    if pa.types.is_list(field.type):
        return [example_of(field.type.value_field)]
    if pa.types.is_struct(field.type):
        return {inner.name: example_of(inner) for inner in field.type}
    if pa.types.is_binary(field.type):
        return b"\xff" * 32
    if pa.types.is_boolean(field.type):
        return True
    return "text" if pa.types.is_string(field.type) else 2**63 - 1


def example_row(schema: pa.Schema) -> dict[str, Any]:
    return {field.name: example_of(field) for field in schema}


def test_list_schemas__all__are_the_tables_that_roles_exchange() -> None:
    assert set(SCHEMAS) == set(REQUIRED)


@pytest.mark.parametrize("name", SCHEMAS)
def test_list_columns__of_any_table__may_be_null_only_where_documented(name: str) -> None:
    assert [field.name for field in SCHEMAS[name] if not field.nullable] == REQUIRED[name]


@pytest.mark.parametrize("name", SCHEMAS)
def test_list_columns__of_any_table__have_exact_types(name: str) -> None:
    exact = (
        pa.types.is_int64,
        pa.types.is_decimal128,
        pa.types.is_binary,
        pa.types.is_string,
        pa.types.is_list,
        pa.types.is_boolean,
    )
    inexact = [
        field.name for field in SCHEMAS[name] if not any(check(field.type) for check in exact)
    ]

    assert inexact == []


@pytest.mark.parametrize("name", ["LOGS", "ENVELOPES", "QUARANTINE", "JOURNAL"])
def test_list_columns__of_a_table_of_logs__hold_the_place_in_the_chain(name: str) -> None:
    assert [column for column in SCHEMAS[name].names if column in PLACE] == PLACE


@pytest.mark.parametrize("name", SCHEMAS)
def test_write__largest_values_of_any_table__come_back_from_parquet(
    name: str, tmp_path: Path
) -> None:
    row = example_row(SCHEMAS[name])
    path = tmp_path / "table.parquet"

    pq.write_table(pa.Table.from_pylist([row], schema=SCHEMAS[name]), path)
    table = pq.read_table(path)

    assert table.schema.equals(SCHEMAS[name])
    assert table.to_pylist() == [row]


@pytest.mark.parametrize("name", SCHEMAS)
def test_write__null_in_any_required_column__is_refused(name: str, tmp_path: Path) -> None:
    schema = SCHEMAS[name]
    for field in (field for field in schema if not field.nullable):
        # Arrow itself writes a missing list as an empty one.
        null, column = ([None], "element") if pa.types.is_list(field.type) else (None, field.name)
        row = example_row(schema) | {field.name: null}
        with pytest.raises(pa.ArrowInvalid, match=f"'{column}' is declared non-nullable"):
            pq.write_table(pa.Table.from_pylist([row], schema=schema), tmp_path / "table.parquet")


@pytest.mark.parametrize("type_", [tables.UINT64, tables.WEI])
@pytest.mark.parametrize("value", [0, 1, 2**53 + 1, 2**64 - 1])
def test_convert__exact_integer__keeps_every_digit(type_: pa.DataType, value: int) -> None:
    assert int(pa.array([Decimal(value)], type_)[0].as_py()) == value
