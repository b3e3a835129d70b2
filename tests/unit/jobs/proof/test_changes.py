"""Whatever is changed in any column of any row is found in its block, or listed as unproved.

The changes are made of the schema, so that a new column is checked as soon as there is one.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.ethereum import header_bytes, transaction_bytes
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.signatures import keccak256
from chainkit_jobs.proof.block import BlockRows, Claims, check_block
from support.audit.audit_exports import Row
from support.audit.chain_proofs import claims_of
from support.chains.proved_chain import ProvedChain, every_kind, proved_chain

COLUMNS = [(table, field.name) for table, schema in CHAIN_TABLES.items() for field in schema]

UNPROVED = {
    *(("receipts", name) for name in ("l1_fee", "l1_gas_used", "l1_gas_price", "l1_fee_scalar")),
    *(("receipts", name) for name in ("l1_base_fee_scalar", "l1_blob_base_fee")),
    *(("receipts", name) for name in ("l1_blob_base_fee_scalar", "gas_used_for_l1")),
}
"""Columns to which no block commits: any value is listed, none is proved."""

HELD_TO = {
    "blocks": {"blocks"},
    "transactions": {"transactions"},  # and one of another type is not what its receipt is of
    "receipts": {"receipts"},
    # A root does not tell which log was changed, only that the receipts of the block were.
    "logs": {"logs", "receipts"},
}


def in_two_blocks() -> ProvedChain:
    return proved_chain(every_kind(), to_block=3)


def one_by_one() -> ProvedChain:
    """A block for each: a small one is checked ten times as fast."""
    sent = [replace(each, block=number) for number, each in enumerate(every_kind(), start=1)]
    return proved_chain(sent, to_block=len(sent) + 1)


Make = Callable[[], ProvedChain]


@cache
def block_of(make: Make, number: int) -> tuple[dict[str, list[Row]], bytes, Claims]:
    """Its rows, what the next one demands, and what the manifest says."""
    chain = make()
    return chain.block(number), chain.hash_of(number), claims_of(chain)


def is_the_same(table: str, column: str, row: Row, value: Any) -> bool:
    """Other words for the same, or no word at all, which claims nothing."""
    old = row[column]
    if value is None and ((table, column) in UNPROVED or column == "transaction_count"):
        return True
    if value is None and column == "chain_id" and row["type"] == 0:
        return True  # the signature says it
    is_deposit = table == "transactions" and row["type"] == 0x7E
    return is_deposit and column in ("mint", "is_system_transaction") and (old or 0) == (value or 0)


def assert_found(
    make: Make, number: int, table: str, position: int, column: str, value: Any
) -> None:
    """Change one value of one row: that it is of another block is for that one to find."""
    rows, demanded, claims = block_of(make, number)
    row = rows[table][position]
    if value == row[column] or is_the_same(table, column, row, value):
        return
    changed = [*rows[table][:position], {**row, column: value}, *rows[table][position + 1 :]]

    found = check_block(BlockRows(number, (demanded,), **rows | {table: changed}), claims)

    assert all(problem.block_number == number for problem in found.problems)
    if found.problems and value is not None and (table, column) not in UNPROVED:
        held_to = {"receipts"} if column == "type" else HELD_TO[table]
        assert {table, *held_to} & {problem.table for problem in found.problems}
    elif not found.problems:
        # Endpoints that tell no nonce with a deposit are taken to say 0.
        is_untold = value is None or (column == "nonce" and row["type"] == 0x7E and value == 0)
        # A header with a later field lacks the one before it.
        is_behind_a_gap = column == "slot_number" and row["block_access_list_hash"] is None
        listed = "block_access_list_hash" if is_behind_a_gap else column
        assert is_untold or is_behind_a_gap or (table, column) in UNPROVED
        assert any((gap.table, gap.column) == (table, listed) for gap in found.gaps)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_change__any_value_a_little__is_found_or_listed(table: str, column: str) -> None:
    if column in ("number", "block_number"):
        pytest.skip("a row of another height comes to another block")
    field = CHAIN_TABLES[table].field(column)
    for number in range(1, len(every_kind()) + 1):
        rows, *_ = block_of(one_by_one, number)
        for position, row in enumerate(rows[table]):
            for value in changes(field.type, row[column]):
                assert_found(one_by_one, number, table, position, column, value)


@given(st.data())
def test_change__any_value_to_any_other__is_found_or_listed(data: st.DataObject) -> None:
    table, column = data.draw(st.sampled_from(COLUMNS).filter(lambda each: "number" not in each[1]))
    number = data.draw(st.sampled_from([1, 2]))
    rows, *_ = block_of(in_two_blocks, number)
    position = data.draw(st.integers(0, len(rows[table]) - 1))
    value = data.draw(values(CHAIN_TABLES[table].field(column).type) | st.none())

    assert_found(in_two_blocks, number, table, position, column, value)


@given(st.data())
def test_change__any_values_at_once_and_hashes_that_fit__raises_nothing(
    data: st.DataObject,
) -> None:
    """A forger of rows can hash and link them as well: then more of the checks run."""
    number = data.draw(st.sampled_from(range(1, len(every_kind()) + 1)))
    rows, demanded, claims = block_of(one_by_one, number)
    changed = {table: [dict(row) for row in held] for table, held in rows.items()}
    for table, column in data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=6)):
        for row in changed[table]:
            row[column] = data.draw(values(CHAIN_TABLES[table].field(column).type) | st.none())
    for row in changed["transactions"]:
        with suppress(MalformedData, TypeError):
            row["transaction_hash"] = keccak256(transaction_bytes(row))
    for header in changed["blocks"]:
        with suppress(MalformedData, TypeError):
            demanded = header["hash"] = keccak256(header_bytes(header))

    found = check_block(BlockRows(number, (demanded,), **changed), claims)

    assert len(found.problems) == len(set(found.problems))


def changes(type_: pa.DataType, value: Any) -> Iterator[Any]:
    """Values that are nearly the same, and none at all."""
    yield None
    if value is None:
        yield from nothings(type_)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, -value)
    elif isinstance(value, str):
        yield value + "0"
    elif isinstance(value, bytes):
        for place in {0, len(value) // 2, len(value) - 1} if value else ():
            yield value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
        yield from (b"\0" + value, value[:-1])
    elif isinstance(value, Mapping):
        for field in type_:
            for inner in changes(field.type, value[field.name]):
                yield {**value, field.name: inner}
    else:
        yield from (value[1:], [*value, *value[-1:]], value[::-1])
        for place, element in enumerate(value):
            for inner in changes(type_.value_type, element):
                yield [*value[:place], inner, *value[place + 1 :]]


def nothings(type_: pa.DataType) -> list[Any]:
    """Values that look like nothing beside a null."""
    if pa.types.is_binary(type_):
        return [b"", b"\0", bytes(20), bytes(32)]
    if pa.types.is_list(type_):
        return [[]]
    if pa.types.is_boolean(type_):
        return [False, True]
    return [""] if pa.types.is_string(type_) else [0, 1]


def values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_binary(type_):
        return st.binary(max_size=40) | st.sampled_from([bytes(20), bytes(32), bytes(256)])
    if pa.types.is_list(type_):
        return st.lists(values(type_.value_type) | st.none(), max_size=3)
    if pa.types.is_struct(type_):
        fields = {field.name: values(field.type) | st.none() for field in type_}
        return st.fixed_dictionaries(fields)
    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_string(type_):
        return st.text(max_size=5)
    bits = 63 if pa.types.is_int64(type_) else 128
    small = st.integers(-2, 130)
    return small | st.integers(-(2 ** min(bits, 126)), 2 ** min(bits, 126) - 1)


def test_change__rows_without_a_position__are_one_problem() -> None:
    rows, demanded, claims = block_of(one_by_one, 1)
    changed = {table: [dict(row) for row in held] for table, held in rows.items()}
    assert len(changed["logs"]) > 1
    for row in (*changed["blocks"], *changed["logs"]):
        row.update({name: None for name in ("number", "log_index") if name in row})

    found = check_block(BlockRows(1, (demanded,), **changed), claims)

    assert [problem.table for problem in found.problems] == ["blocks", "logs"]
