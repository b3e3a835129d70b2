"""A node's rows, read beside the chain: each is given out once, and none is lost."""

import itertools
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit_jobs.reconcile.screening.node_rows import (
    HIGHEST_SEQUENCE,
    LastOpened,
    NodeRows,
    RowGroup,
    Share,
    batch_rows,
    claims,
    read_group,
)
from chainkit_jobs.sources import RAW_ENVELOPES

CLAIM = pa.decimal128(20, 0)


def write(path, groups):
    """Write row groups of claimed sequences; each row's envelope is its claim as text."""
    with pq.ParquetWriter(path, RAW_ENVELOPES) as writer:
        for rows in groups:
            table = pa.table(
                [pa.array(map(Decimal, rows), CLAIM), [str(row).encode() for row in rows]],
                schema=RAW_ENVELOPES,
            )
            writer.write_table(table)
    first, found = 0, []
    for number, rows in enumerate(groups):
        ends = (min(rows), max(rows))
        found.append(RowGroup(str(path), number, first, len(rows), 1, *ends, *ends, True, ""))
        first += len(rows)
    return found


def whole(groups):
    return [Share(group, ((0, HIGHEST_SEQUENCE),)) for group in groups]


def texts(rows):
    return [int(each) for each in rows.envelopes.to_pylist()]


@st.composite
def files(draw):
    """Row groups that follow each other, out of order within, and ranges that ascend."""
    values = draw(st.lists(st.integers(0, 60), min_size=1, max_size=40))
    ends = [*sorted(set(draw(st.lists(st.integers(0, 60), max_size=3)))), 61]
    starts = [0, *(end for end in ends[:-1])]
    groups = [
        [value for value in values if start <= value < end]
        for start, end in zip(starts, ends, strict=True)
    ]
    cuts = sorted(draw(st.lists(st.integers(0, 70), min_size=2, max_size=6)))
    ranges = [(a, b - 1) for a, b in itertools.pairwise(cuts) if a < b]
    groups = [group for group in groups if group]
    # Odd claims anywhere.
    for _ in range(draw(st.integers(0, 2))):
        group = draw(st.sampled_from(groups))
        group.insert(draw(st.integers(0, len(group))), draw(st.integers(0, 70)))
    return groups, ranges


@given(files(), st.data())
def test_between__ranges_that_ascend__each_row_once_and_the_rest_at_the_end(
    tmp_path_factory, case, data
):
    groups, ranges = case
    path = tmp_path_factory.mktemp("rows") / "envelopes.parquet"
    first = data.draw(st.integers(0, 70))
    own = ((first, data.draw(st.integers(first, 70))), (90, 99))
    reader = NodeRows([Share(group, own) for group in write(path, groups)])

    parts = [reader.between(first, last) for first, last in ranges]
    for (first, last), part in zip(ranges, parts, strict=True):
        assert all(first <= value <= last for value in texts(part))
    parts += reader.rest()

    indexes = [index for part in parts for index in part.row_indexes.tolist()]
    held = [value for group in groups for value in group if own[0][0] <= value <= own[0][1]]
    assert sorted(value for part in parts for value in texts(part)) == sorted(held)
    assert len(set(indexes)) == len(indexes)


def test_between__rows_in_order__are_all_given_out_where_they_belong(tmp_path):
    groups = write(tmp_path / "envelopes.parquet", [[1, 2, 3], [4, 5, 6], [2**64 - 1]])
    reader = NodeRows(whole(groups))

    assert texts(reader.between(2, 4)) == [2, 3, 4]
    assert texts(reader.between(5, 2**64 - 1)) == [5, 6, 2**64 - 1]


def test_between__an_odd_claim_far_ahead__does_not_stop_the_reading(tmp_path):
    [one, other] = write(tmp_path / "envelopes.parquet", [[1, 2, 900, 3], [4, 5, 6]])
    reader = NodeRows(whole([replace(one, first=1, last=3), other]))

    assert texts(reader.between(1, 2)) == [1, 2]
    assert texts(reader.between(3, 4)) == [3, 4]
    assert texts(reader.between(5, 6)) == [5, 6]
    assert [texts(part) for part in reader.rest()] == [[900]]


def test_read_group__a_row_outside_what_the_statistics_say__stops_the_reading(tmp_path):
    [group] = write(tmp_path / "envelopes.parquet", [[1, 5, 3]])
    lying = replace(group, highest=4)

    with pytest.raises(pa.ArrowInvalid, match="sequences 1 to 5 in a row group whose statistics"):
        list(read_group(LastOpened(), lying))


def test_read_group__a_row_without_envelope__stops_the_reading(tmp_path):
    schema = pa.schema([("sequence_id", CLAIM), ("envelope", pa.binary())])
    path = tmp_path / "envelopes.parquet"
    pq.write_table(pa.table([[Decimal(1)], [None]], schema=schema), path)

    with pytest.raises(pa.ArrowInvalid, match="1 rows have no envelope"):
        list(read_group(LastOpened(), RowGroup(str(path), 0, 0, 1, 1, 1, 1, 1, 1, False, "")))


def test_claims__null_negative_and_beyond_uint64__are_zero():
    values = [Decimal(7), None, Decimal(-1), Decimal(2**64), Decimal(2**64 - 1)]

    assert claims(pa.array(values, CLAIM)).tolist() == [7, 0, 0, 0, 2**64 - 1]
    assert claims(pa.array(values, CLAIM).slice(3)).dtype == np.uint64


@pytest.mark.parametrize(
    ("rows", "size", "expected"),
    [(10**6, 10**8, 20_000), (1_000, 2**30, 31), (1, 2**31, 1), (5, 0, 20_000)],
)
def test_batch_rows__large_rows__fewer_at_a_time(rows, size, expected):
    assert batch_rows(rows, size) == expected
