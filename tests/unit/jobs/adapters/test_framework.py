"""An import checks and writes without Spark: names of files, row groups, blooms."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from click import Choice
from hypothesis import given
from hypothesis import strategies as st

from chainkit.ethereum import bloom_of_logs
from chainkit.exports import parquet, tables
from chainkit_jobs.adapters import write
from chainkit_jobs.adapters.adapter import SourceFile
from chainkit_jobs.adapters.checks import Bounds
from chainkit_jobs.adapters.completeness import _bloom_batches
from chainkit_jobs.adapters.faults import Fault, FaultCode
from chainkit_jobs.adapters.file_checks import Span, file_faults
from chainkit_jobs.adapters.registry import ADAPTERS
from chainkit_jobs.cli.import_chain import FORMATS, import_chain_command
from support.project import ROOT

CHAIN_ID = 31337
DAY = date(2026, 1, 2)
ALL = Bounds(0, 29)


def ranged(table: str, *ranges: tuple[int, int]) -> list[SourceFile]:
    return [
        SourceFile(f"{table}-{index}", table, first, last)
        for index, (first, last) in enumerate(ranges)
    ]


def faults_of(
    files: Sequence[SourceFile],
    spans: dict[str, Span] | None = None,
    bounds: Bounds = ALL,
    ends_where_asked: bool = False,
) -> list[tuple[str, str, int, int | None, str | None]]:
    """Rows reach over what a file's name says, unless ``spans`` says otherwise."""
    found = {
        (file.table, file.name): Span(file.first_block or 0, file.last_block or 0, None, None)
        for file in files
    } | {(name.split("-")[0], name): span for name, span in (spans or {}).items()}
    faults = file_faults(files, found, bounds, CHAIN_ID, ends_where_asked)
    return [(str(each.code), each.table, each.count, each.block, each.file) for each in faults]


def span(first: int, last: int) -> Span:
    return Span(first, last, None, None)


@pytest.mark.parametrize("table", ["blocks", "transactions", "logs"])
def test_names__one_after_the_other__have_no_fault(table: str) -> None:
    assert faults_of(ranged(table, (0, 9), (10, 19), (20, 29))) == []


@pytest.mark.parametrize(
    ("ranges", "bounds", "fault"),
    [
        ([(0, 9), (20, 29)], Bounds(0, 29), ("MISSING_FILE", "logs", 1, 10, "logs-1")),
        ([(10, 29)], Bounds(5, 29), ("MISSING_FILE", "logs", 1, 5, "logs-0")),
        ([(0, 19)], Bounds(0, 25), ("MISSING_FILE", "logs", 1, 20, "logs-0")),
        ([(0, 9), (12, 19), (22, 29)], Bounds(0, 29), ("MISSING_FILE", "logs", 2, 10, "logs-1")),
        ([(0, 10), (10, 29)], Bounds(0, 29), ("RANGE_END", "logs", 1, 10, "logs-1")),
        ([(0, 11), (10, 29)], Bounds(0, 29), ("OVERLAPPING_FILES", "logs", 1, 10, "logs-1")),
        ([(0, 29), (10, 19)], Bounds(0, 29), ("OVERLAPPING_FILES", "logs", 1, 10, "logs-1")),
    ],
)
def test_names__hole_or_overlap__is_one_fault(
    ranges: list[tuple[int, int]], bounds: Bounds, fault: tuple[object, ...]
) -> None:
    assert faults_of(ranged("logs", *ranges), bounds=bounds) == [fault]


def test_names__hole_outside_of_what_is_imported__is_none() -> None:
    files = ranged("blocks", (0, 4), (10, 19), (20, 29), (40, 49))

    assert faults_of(files, bounds=Bounds(10, 29)) == []
    assert faults_of(files, bounds=Bounds(9, 29))[0][0] == "MISSING_FILE"
    assert faults_of(files, bounds=Bounds(10, 30))[0][0] == "MISSING_FILE"


@pytest.mark.parametrize(
    ("table", "reached", "fault"),
    [
        ("blocks", span(10, 18), ("RANGE_END", "blocks", 1, 19, "blocks-1")),
        ("blocks", span(10, 20), ("RANGE_END", "blocks", 1, 20, "blocks-1")),
        ("blocks", span(9, 19), ("RANGE_END", "blocks", 1, 9, "blocks-1")),
        ("blocks", span(10, 15), ("HALF_WRITTEN", "blocks", 1, 16, "blocks-1")),
        ("logs", span(11, 20), ("RANGE_END", "logs", 1, 20, "logs-1")),
        ("logs", span(9, 12), ("RANGE_END", "logs", 1, 9, "logs-1")),
        # Blocks need not have logs.
        ("logs", span(11, 18), None),
    ],
)
def test_rows__end_elsewhere_than_the_name_says__is_named(
    table: str, reached: Span, fault: tuple[object, ...] | None
) -> None:
    files = ranged(table, (0, 9), (10, 19), (20, 29))

    assert faults_of(files, {f"{table}-1": reached}) == ([fault] if fault else [])


@pytest.mark.parametrize(("table", "codes"), [("blocks", ["HALF_WRITTEN"]), ("logs", [])])
def test_rows__file_without_any__is_half_written_only_of_blocks(
    table: str, codes: list[str]
) -> None:
    faults = file_faults(ranged(table, (0, 29)), {}, Bounds(0, 29), CHAIN_ID, False)

    assert [fault.code for fault in faults] == codes


@pytest.mark.parametrize(("chain_id", "codes"), [(1, ["WRONG_CHAIN"]), (CHAIN_ID, []), (None, [])])
def test_names__chain__must_be_the_deployments(chain_id: int | None, codes: list[str]) -> None:
    file = SourceFile("logs-0", "logs", 0, 29, chain_id=chain_id)

    assert [fault[0] for fault in faults_of([file])] == codes


def at(hour: int, minute: int, day: date = DAY) -> int:
    return int(datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("first", "last", "ends_where_asked", "faults"),
    [
        (at(0, 0), at(23, 46), False, []),
        (at(0, 0), at(23, 44), False, [("HALF_WRITTEN", 29, "blocks-0")]),
        (at(0, 0), at(12, 0), True, []),
        (at(0, 0), at(0, 0, date(2026, 1, 3)), True, [("RANGE_END", None, "blocks-0")]),
        (at(23, 59, date(2026, 1, 1)), at(23, 59), True, [("RANGE_END", None, "blocks-0")]),
    ],
)
def test_days__end_early_or_hold_another_day__is_named(
    first: int, last: int, ends_where_asked: bool, faults: list[tuple[object, ...]]
) -> None:
    file = SourceFile("blocks-0", "blocks", day=DAY)
    spans = {"blocks-0": Span(0, 29, first, last)}

    found = faults_of([file], spans, ends_where_asked=ends_where_asked)

    assert [(code, block, name) for code, _, _, block, name in found] == faults


def test_days__last_day_in_two_files__ends_with_the_later_one() -> None:
    early, late = (SourceFile(f"blocks-{each}", "blocks", day=DAY) for each in (0, 1))
    spans = {
        "blocks-0": Span(0, 9, at(0, 0), at(11, 0)),
        "blocks-1": Span(10, 29, at(11, 1), at(23, 59)),
    }

    assert faults_of([early, late], spans) == []
    assert faults_of([early], spans)[0][0] == "HALF_WRITTEN"


def test_fault__place__names_what_is_known() -> None:
    known = Fault(FaultCode.RANGE_END, "logs", 1, 5, "a.parquet", "x", "y")
    unknown = Fault(FaultCode.RANGE_END, "logs", 1, None, None, "x", "y")

    assert (known.place, unknown.place) == ("block 5, a.parquet", "")


def test_codes__each__is_documented_and_named_by_itself() -> None:
    source = Path(str(FaultCode.__module__.replace(".", "/") + ".py"))
    text = (ROOT / "jobs" / source).read_text()
    lines = text.splitlines()

    for code in FaultCode:
        [line] = [index for index, each in enumerate(lines) if each == f'    {code} = "{code}"']
        assert lines[line + 1].startswith('    """')
    assert list(FaultCode) == sorted(FaultCode)


def test_formats__option__offers_the_adapters() -> None:
    [option] = [each for each in import_chain_command.params if each.name == "format_name"]

    assert isinstance(option.type, Choice)
    assert tuple(option.type.choices) == FORMATS == tuple(sorted(ADAPTERS))
    assert all(adapter.name == name for name, adapter in ADAPTERS.items())


def block_rows(numbers: Sequence[int], range_blocks: int) -> pa.Table:
    columns = {field.name: pa.nulls(len(numbers), field.type) for field in tables.LOGS}
    columns["block_number"] = pa.array(numbers, pa.int64())
    for name in ("transaction_index", "log_index"):
        columns[name] = pa.array(range(len(numbers)), pa.int64())
    for name in ("block_hash", "transaction_hash", "address", "data"):
        columns[name] = pa.array([bytes([number % 256]) for number in numbers], pa.binary())
    columns["topics"] = pa.array([[b"\x01"]] * len(numbers), tables.HASHES)
    index = pa.array([number // range_blocks for number in numbers], pa.int64())
    return pa.table({"range_index": index, **columns})


@given(
    st.lists(st.integers(0, 9), min_size=15, max_size=60).map(sorted),
    st.integers(1, 15),
    st.randoms(use_true_random=False),
)
def test_write__batches_cut_anywhere__give_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], size: int, chance: random.Random
) -> None:
    table = block_rows(numbers, size)
    whole, cut = (tmp_path_factory.mktemp(name) for name in ("whole", "cut"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_GROUP_ROWS", 4)
        patch.setattr(parquet, "_PIECE_ROWS", 2)
        results = [
            {
                row["range_index"]: (row["rows"], (folder / row["staged"]).read_bytes())
                for batch in write._writer(str(folder), tables.LOGS)(
                    iter(table.to_batches(max_chunksize=chunk))
                )
                for row in batch.to_pylist()
            }
            for folder, chunk in ((whole, 1000), (cut, chance.randint(1, 9)))
        ]

    assert results[0] == results[1]
    assert {index: rows for index, (rows, _) in results[0].items()} == {
        index: sum(number // size == index for number in numbers)
        for index in {number // size for number in numbers}
    }


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20).map(sorted), st.integers(1, 7))
def test_blooms__batches_cut_anywhere__are_those_of_whole_blocks(
    numbers: list[int], chunk: int
) -> None:
    logs = [
        {"block_number": number, "address": bytes([index] * 20), "topics": [bytes([index] * 32)]}
        for index, number in enumerate(numbers)
    ]
    schema = pa.schema(
        [("block_number", pa.int64()), ("address", pa.binary()), ("topics", tables.HASHES)]
    )
    batches = pa.Table.from_pylist(logs, schema).to_batches(max_chunksize=chunk)

    found = [row for batch in _bloom_batches(iter(batches)) for row in batch.to_pylist()]

    assert found == [
        {
            "block_number": number,
            "bloom": bloom_of_logs([log for log in logs if log["block_number"] == number]),
        }
        for number in sorted(set(numbers))
    ]
