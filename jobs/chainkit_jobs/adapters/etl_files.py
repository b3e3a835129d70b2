"""Files of the ethereum-etl family: CSV, JSON lines and Parquet with its column names.

CSV and JSON are read as text, so that no number passes through a double. Every file's own columns
are read before Spark reads the file: a column is found by its name, wherever it is.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import reduce
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, StringType, StructType

from chainkit.documents.canonical import parse_object
from chainkit.errors import MalformedData, StoreError
from chainkit_jobs.adapters.adapter import SourceFile
from chainkit_jobs.adapters.cells import relative_path
from chainkit_jobs.adapters.etl_layout import CORRUPT, FILE, Kind, SourceColumn
from chainkit_jobs.adapters.footers import column_types
from chainkit_jobs.spark_paths import spark_paths

_LARGEST_LINE: Final = 2**31 - 1
"""Characters of a CSV field that Python's reader takes: calldata is long."""

_LISTS: Final = ArrayType(StringType())


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one table that Spark reads alike."""

    ending: str
    """``.parquet``, ``.json`` or ``.csv``, packed or not."""
    paths: tuple[Path, ...]
    schema: StructType


@dataclass(frozen=True, slots=True)
class Family:
    """A format of the family, with the advice for a person whose files it refuses."""

    name: str
    """For error messages."""
    columns: Mapping[str, Mapping[str, SourceColumn]]
    """The columns that are read, by the source's table."""
    command: str
    """The commands that write all columns."""
    exact: str
    """Where amounts come from that are no doubles."""
    is_mixed: bool = False
    """Whether one file of JSON holds rows of all tables: then its first line does not show the
    columns of one table."""

    def require(self, directory: Path, files: Sequence[SourceFile], tables: Iterable[str]) -> None:
        """Raise StoreError where one of the tables has no file."""
        for table in tables:
            if all(file.table != table for file in files):
                raise StoreError(f"source {directory}", f"{table} (`{self.command}`)", "none")

    def groups(self, directory: Path, files: Sequence[SourceFile]) -> Mapping[str, Sequence[Group]]:
        """Return the files of each table, grouped by the columns that Spark needs to know.

        Raises StoreError that names a file which is cut off, lacks a column or has another type.
        """
        return {table: self._groups(directory, table, files) for table in self.columns}

    def read(
        self, spark: SparkSession, directory: Path, table: str, groups: Sequence[Group]
    ) -> DataFrame:
        """Return the rows of one table's files, at least one, with all of the table's columns.

        Besides: FILE, the name of the file, and CORRUPT, the line that is no whole row.
        """
        frames = [self._read(spark, directory, table, group) for group in groups]
        return reduce(DataFrame.unionByName, frames)

    def _groups(self, directory: Path, table: str, files: Sequence[SourceFile]) -> Sequence[Group]:
        found: dict[tuple[str, ...], list[Path]] = {}
        for path in (directory / file.name for file in files if file.table == table):
            found.setdefault((_ending(path.name), *self._header(path, table)), []).append(path)
        if len({key[0] == ".parquet" for key in found}) > 1:
            got = "some as Parquet and some as text"
            raise StoreError(f"source {directory}", f"files of {table} in one form", got)
        return [
            Group(key[0], tuple(paths), self._schema(table, key[0], key[1:], paths))
            for key, paths in found.items()
        ]

    def _schema(
        self, table: str, ending: str, header: Sequence[str], paths: Sequence[Path]
    ) -> StructType:
        wanted = self.columns[table]
        if ending == ".parquet":
            return self._parquet_schema(paths, table)
        if ending == ".json":
            return _text_schema(wanted, wanted, _LISTS).add(CORRUPT, "string")
        # A table without rows has no header either.
        return _text_schema(header or wanted, wanted, StringType()).add(CORRUPT, "string")

    def _read(self, spark: SparkSession, directory: Path, table: str, group: Group) -> DataFrame:
        wanted, places = self.columns[table], spark_paths(spark, group.paths)
        ending, schema = group.ending, group.schema
        if ending == ".parquet":
            frame = spark.read.schema(schema).parquet(*places)
        elif ending == ".json":
            frame = spark.read.schema(schema).json(places, columnNameOfCorruptRecord=CORRUPT)
        else:
            # A reader that leaves out columns does not see that some are missing.
            reader = spark.read.schema(schema).option("columnPruning", "false")
            frame = reader.csv(places, header=True, escape='"', columnNameOfCorruptRecord=CORRUPT)
        columns = [
            _nothing(_LISTS if column.kind is Kind.LIST else "string").alias(name)
            if name not in schema.names
            else _split(name).alias(name)
            if column.kind is Kind.LIST and ending == ".csv"
            else sf.col(name)
            for name, column in wanted.items()
        ]
        corrupt = _nothing("string") if ending == ".parquet" else sf.col(CORRUPT)
        return frame.select(*columns, corrupt.alias(CORRUPT), relative_path(directory).alias(FILE))

    def _header(self, path: Path, table: str) -> tuple[str, ...]:
        """Return the columns of a text file in their order, () for a file without a row."""
        if path.suffix == ".parquet":
            return ()
        header = self._text_header(path)
        wanted = self.columns[table]
        is_csv = _ending(path.name) == ".csv"
        missing = [
            name
            for name, column in wanted.items()
            if column.is_required and (is_csv or not column.may_be_empty) and name not in header
        ]
        if header and missing and not self.is_mixed:
            expected = f"the columns of `{self.command}`"
            raise self._error(path, expected, f"none of the name {', '.join(missing)}")
        if len(set(header)) < len(header):
            raise self._error(path, "each column once", ", ".join(header))
        # All JSON is read alike.
        return header if is_csv else ()

    def _text_header(self, path: Path) -> tuple[str, ...]:
        try:
            with _opened(path) as file:
                first = file.readline()
            if not first:
                return ()
            if path.suffix != ".gz" and not _ends_a_line(path):
                expected = "a file whose last line is whole"
                raise self._error(path, expected, "one that was cut off")
            if _ending(path.name) == ".csv":
                csv.field_size_limit(_LARGEST_LINE)
                return tuple(next(csv.reader([first])))
            value = parse_object(first.encode(), f"{self.name} file {path}")
        except (OSError, EOFError, ValueError, csv.Error) as error:
            raise self._error(path, "UTF-8 text, one row a line", error) from error
        except MalformedData as error:
            raise self._error(path, "UTF-8 text, one row a line", error.got) from error
        if not isinstance(value, dict):
            raise self._error(path, "a JSON object in each line", type(value).__name__)
        return tuple(value)

    def _parquet_schema(self, paths: Sequence[Path], table: str) -> StructType:
        first, *others = [self._parquet_types(path, table) for path in paths]
        for path, types in zip(paths[1:], others, strict=True):
            for name in self.columns[table]:
                if types.get(name) != first.get(name):
                    expected = f"{name} of type {first.get(name)}, as {paths[0].name} has it"
                    raise self._error(path, expected, types.get(name, "none"))
        schema = StructType()
        for name, type_ in first.items():
            schema.add(name, from_arrow_type(type_, prefer_timestamp_ntz=False))
        return schema

    def _parquet_types(self, path: Path, table: str) -> dict[str, pa.DataType]:
        wanted = self.columns[table]
        types = dict(column_types(path, f"{self.name} file {path}", wanted))
        for name, column in wanted.items():
            if name in types:
                self._require_type(path, name, column, types[name])
            elif column.is_required:
                expected = f"the columns of `{self.command}`"
                raise self._error(path, expected, f"none of the name {name}")
        return types

    def _require_type(
        self, path: Path, name: str, column: SourceColumn, type_: pa.DataType
    ) -> None:
        if column.kind.accepts(type_):
            return
        expected, got = f"{name} as {column.kind.value}", str(type_)
        if pa.types.is_floating(type_) and column.kind is Kind.NUMBER:
            rounded = f"{type_}, which rounds whole numbers above 2**53"
            raise self._error(path, expected, rounded, f"exact ones: {self.exact}")
        raise self._error(path, expected, got, f"take it from `{self.command}`")

    def _error(self, path: Path, expected: object, got: object, place: str = "") -> StoreError:
        return StoreError(f"{self.name} file {path}", expected, got, place)


def day_of(directory: Path, text: str) -> date:
    """Return the day of a folder's name. Raises StoreError where there is no such day."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise StoreError(f"source {directory}", "a day YYYY-MM-DD", text) from error


def _nothing(type_: str | ArrayType) -> Column:
    return sf.lit(None).cast(type_)


def _split(name: str) -> Column:
    """Return a text's list between its commas: an empty text is an empty list."""
    is_nothing = sf.coalesce(sf.col(name), sf.lit("")) == ""
    return sf.when(is_nothing, sf.array().cast(_LISTS)).otherwise(sf.split(sf.col(name), ","))


def _text_schema(
    names: Iterable[str], wanted: Mapping[str, SourceColumn], lists: StringType | ArrayType
) -> StructType:
    schema = StructType()
    for name in names:
        is_list = name in wanted and wanted[name].kind is Kind.LIST
        schema.add(name, lists if is_list else StringType())
    return schema


def _ending(name: str) -> str:
    return Path(name.removesuffix(".gz")).suffix


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as packed:
            yield packed
    else:
        with path.open(encoding="utf-8", newline="") as file:
            yield file


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
