import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.evidence.findings import finding_id
from chainkit_jobs.cli.reconcile import _parse_node
from chainkit_jobs.findings import FINDINGS, MEANINGS, Checks, Code, complete
from chainkit_jobs.reconcile.outputs import json_value

DIGEST, OTHER_DIGEST = b"\x01" * 32, b"\x02" * 32

BASE: dict[str, Any] = {
    "code": "ENVELOPE_ALTERED",
    "node_id": 100,
    "originator_id": 0,
    "sequence_id": 42,
    "expected_digest": DIGEST,
    "served_digest": OTHER_DIGEST,
    "envelope": b"served",
}


def test_finding_id__same_fields__is_this_very_id_for_ever() -> None:
    # sha256 of ["ENVELOPE_ALTERED",100,0,"42","01…","02…","<sha256 of b'served'>"]
    assert finding_id(**BASE) == (
        "8761b863d66bf1b0ac50b0bcd56e3970c86814ffac7482609b483395e7e6ad7f"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"code": "ENVELOPE_INVENTED"},
        {"node_id": 200},
        {"node_id": None},
        {"originator_id": 1},
        {"sequence_id": 43},
        {"expected_digest": None},
        {"served_digest": DIGEST},
        {"envelope": b"Served"},
        {"envelope": None},
        {"expected_digest": OTHER_DIGEST, "served_digest": DIGEST},
    ],
)
def test_finding_id__one_field_differs__is_another(change: dict[str, Any]) -> None:
    assert finding_id(**BASE | change) != finding_id(**BASE)


def found(**changes: Any) -> dict[str, Any]:
    row = dict.fromkeys(set(FINDINGS.names) - {"finding_id", "severity", "node_public_key"})
    return row | BASE | {"sequence_id": Decimal(42)} | changes


def test_complete__any_order__gives_one_order_with_key_and_severity() -> None:
    rows = [
        found(sequence_id=Decimal(100)),
        found(sequence_id=Decimal(9)),
        found(node_id=None, code="CHAIN_SEQUENCE_GAP"),
        found(node_id=200),
    ]

    findings = complete(rows, {100: b"key"})

    assert findings == complete(rows[::-1], {100: b"key"})
    assert [(r["code"], r["node_id"], int(r["sequence_id"])) for r in findings] == [
        ("CHAIN_SEQUENCE_GAP", None, 42),
        ("ENVELOPE_ALTERED", 100, 9),
        ("ENVELOPE_ALTERED", 100, 100),
        ("ENVELOPE_ALTERED", 200, 42),
    ]
    assert [row["node_public_key"] for row in findings] == [None, b"key", b"key", None]
    assert {row["severity"] for row in findings} == {"critical"}


@pytest.mark.parametrize(
    ("code", "usual", "unproved", "unsigned"),
    [
        ("ENVELOPE_ALTERED", "critical", "major", "major"),
        ("ENVELOPE_MISSING", "major", "minor", "major"),
        ("SIGNATURE_INVALID", "major", "minor", "major"),
        ("ENVELOPE_UNREADABLE", "major", "major", "major"),
        ("CHAIN_EVENTS_CONTRADICT", "critical", "major", "critical"),
        ("CHAIN_SEQUENCE_GAP", "critical", "critical", "critical"),
        ("NODE_BEHIND", "note", "note", "note"),
    ],
)
def test_severity__what_it_rests_on_was_not_checked__is_one_grade_less(
    code: str, usual: str, unproved: str, unsigned: str
) -> None:
    checks = [Checks(), Checks(is_chain_proved=False), Checks(with_signatures=False)]

    assert [each.severity(Code(code)) for each in checks] == [usual, unproved, unsigned]
    assert Checks(False, False).severity(Code(code)) == unproved


def test_complete__rows__fit_the_published_schema(tmp_path: Path) -> None:
    findings = complete([found(), found(sequence_id=Decimal(2**64 - 1))], {})

    pq.write_table(pa.Table.from_pylist(findings, schema=FINDINGS), tmp_path / "f.parquet")

    assert pq.read_schema(tmp_path / "f.parquet").names == FINDINGS.names


def test_meanings__every_code__is_explained_in_a_sentence() -> None:
    assert set(MEANINGS) == set(Code)
    assert all(re.fullmatch(r"[A-Z].{20,90}\.", meaning.text) for meaning in MEANINGS.values())


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (b"\x00\xff", "0x00ff"),
        (Decimal(2**64 - 1), "18446744073709551615"),
        (7, 7),
        (None, None),
        ("text", "text"),
    ],
)
def test_json_value__each_type__loses_nothing(value: object, written: object) -> None:
    assert json_value(value) == written


@pytest.mark.parametrize(
    ("argument", "node"),
    [
        ("100=exports/a", (100, Path("exports/a"))),
        ("exports/a", (None, Path("exports/a"))),
        ("day=3/a", (None, Path("day=3/a"))),
        ("100=day=3", (100, Path("day=3"))),
    ],
)
def test_parse_node__argument__is_id_and_folder(
    argument: str, node: tuple[int | None, Path]
) -> None:
    assert _parse_node(argument) == node
