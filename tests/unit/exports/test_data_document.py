"""docs/data.md says of every column what chainkit.exports.tables and the manifest say."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from chainkit.exports import Manifest, tables
from support.project import DOCS

DOCUMENT = (DOCS / "data.md").read_text()
SCHEMAS = {
    name.lower(): value for name, value in vars(tables).items() if isinstance(value, pa.Schema)
}


def rows_below(heading: str) -> list[list[str]]:
    [section] = re.findall(rf"\n#+ {heading}\n(.*?)(?=\n#|\Z)", DOCUMENT, re.DOTALL)
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def shown(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_):
        return f"list of {shown(type_.value_type)}"
    if pa.types.is_struct(type_):
        return "struct"
    return {"bool": "boolean"}.get(str(type_), str(type_))


@pytest.mark.parametrize("table", SCHEMAS)
def test_document__table__lists_its_columns_with_type_and_null(table: str) -> None:
    documented = [(name.strip("`"), type_, null) for name, type_, null, _ in rows_below(table)]

    assert documented == [
        (field.name, shown(field.type), "yes" if field.nullable else "") for field in SCHEMAS[table]
    ]


def test_document__manifest__lists_every_field() -> None:
    listed = {
        name for cell, *_ in rows_below("The manifest") for name in re.findall("`(.*?)`", cell)
    }

    assert listed == {"format", "tool", *Manifest.__slots__}
