"""An export's claims and gaps must neither accuse the honest nor hide the others."""

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.errors import StoreError
from chainkit_jobs.reconcile.audit import Audit, run_audit
from chainkit_jobs.reconcile.conclusion import conclude, not_compared
from support.audit.audit_exports import (
    Post,
    base_posts,
    honest,
    key_of,
    registered,
    renew_digest,
    rewrite_table,
    write_chain,
    write_node,
)
from support.audit.inputs import read_inputs

A, B = 100, 200
INVENTED = Post(9, 18, base_posts()[0].payload)


def audit_of(spark: SparkSession, root: Path, posts: list[Post], **about: Any) -> Audit:
    """Audit A, which is honest, and B, which invents the ninth payload besides."""
    registry = [registered(A), registered(B, log_index=1)]
    chain = write_chain(root / "chain", posts, registry, **about)
    a, b = key_of(A), key_of(B)
    nodes = [
        (None, write_node(root / "a", honest(base_posts(), a), a)),
        (None, write_node(root / "b", [*honest(base_posts(), b), INVENTED.envelope(b)], b)),
    ]
    return run_audit(spark.sparkContext, read_inputs(chain, nodes))


def found(audit: Audit) -> list[tuple[str, int | None, int, str | None]]:
    return [
        (row["code"], row["node_id"], int(row["sequence_id"]), row["detail"])
        for row in audit.findings
    ]


@pytest.mark.parametrize(
    ("held", "sequence", "detail"),
    [
        (slice(0, 7), 8, "sequence 8"),
        (slice(2, 8), 1, "sequences 1 to 2"),
        (slice(0, 0), 1, "sequences 1 to 8"),
    ],
    ids=["the last is cut off", "the first are cut off", "all are"],
)
def test_audit__chain_export_is_cut_off__chain_is_found_and_only_the_invention(
    spark: SparkSession, tmp_path: Path, held: slice, sequence: int, detail: str
) -> None:
    about = {"sequence_before": 0, "sequence_after": 8}

    audit = audit_of(spark, tmp_path, base_posts()[held], **about)

    assert found(audit) == [
        ("CHAIN_SEQUENCE_GAP", None, sequence, detail),
        ("ENVELOPE_INVENTED", B, 9, None),
    ]


def test_audit__counter_stands_at_the_highest__nothing_is_invented_below(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit = audit_of(spark, tmp_path, base_posts(), sequence_after=2**64 - 1)

    detail = f"sequences 9 to {2**64 - 1}"
    assert found(audit) == [("CHAIN_SEQUENCE_GAP", None, 9, detail)]
    assert audit.counts[B]["outside"] == 1


def test_audit__counter_was_not_read__nothing_is_called_invented(
    spark: SparkSession, tmp_path: Path
) -> None:
    about = {"sequence_before": None, "sequence_after": None}

    audit = audit_of(spark, tmp_path, base_posts()[2:7], **about)

    assert found(audit) == []
    assert (audit.counts[A]["outside"], audit.counts[B]["outside"]) == (3, 4)
    # The contracts count from 1: they gave out what comes before the first one.
    assert (audit.counts[A]["undecided"], audit.counts[B]["undecided"]) == (1, 2)
    found_out = conclude(audit)
    assert found_out.outcome == "could not decide"
    assert "clean" not in found_out.verdict
    assert found_out.lacking == (
        "not proved: the chain export (see --trust)",
        "not known: the end of the contracts' counter",
    )
    assert found_out.undecided[1].startswith("node 200: 2 sequences above 7, the last that the")
    assert [each for each in not_compared(audit) if "lacks or repeats" in each] == [
        f"node {node_id}: 2 sequences that the chain export lacks or repeats, though the "
        "contracts must have given them out"
        for node_id in (A, B)
    ]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"sequence_before": 1}, "expected sequences above 1, its sequence_before, got 1"),
        ({"sequence_after": 7}, "expected sequences up to 7, its sequence_after, got 8"),
    ],
)
def test_audit__chain_export_contradicts_its_counters__is_refused(
    spark: SparkSession, tmp_path: Path, about: dict[str, int], message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        audit_of(spark, tmp_path, base_posts(), **about)


def test_read_inputs__chain_export_ends_before_it_begins__is_refused(tmp_path: Path) -> None:
    chain = write_chain(tmp_path / "chain", [], [], from_block=21)

    with pytest.raises(StoreError, match="expected a first block up to its last, 20, got 21"):
        read_inputs(chain, [])


Damage = Callable[[Path], None]


def table_of(export: Path) -> pa.Table:
    table = pq.read_table(export / "envelopes.parquet")
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def with_first(**values: Any) -> Damage:
    def damage(export: Path) -> None:
        table = table_of(export)
        rows = table.to_pylist()
        changed = pa.Table.from_pylist([rows[0] | values, *rows[1:]], schema=table.schema)
        rewrite_table(export, "envelopes.parquet", changed)

    return damage


def about(**fields: Any) -> Damage:
    def damage(export: Path) -> None:
        path = export / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return damage


def with_table(change: Callable[[pa.Table], pa.Table]) -> Damage:
    return lambda export: rewrite_table(export, "envelopes.parquet", change(table_of(export)))


def with_bytes(change: Callable[[bytes], bytes]) -> Damage:
    def damage(export: Path) -> None:
        file = export / "envelopes.parquet"
        file.write_bytes(change(file.read_bytes()))
        renew_digest(export, file.name)

    return damage


def zeroed(content: bytes) -> bytes:
    return content[:60] + bytes(len(content) // 2) + content[60 + len(content) // 2 :]


def nothing(export: Path) -> None:
    """Leave the file as it is."""


SET_ASIDE: dict[str, tuple[dict[str, Any], Damage, str]] = {
    "begins far above": ({"from_block": 10**9}, nothing, "begins at block 1000000000, after its"),
    "its column in other letters": (
        {},
        with_table(lambda table: table.rename_columns({"envelope": "Envelope"})),
        "expected a column envelope, got Envelope",
    ),
    "null envelope": ({}, with_first(envelope=None), "1 rows have no envelope"),
    "no envelopes": (
        {},
        with_table(lambda table: table.drop_columns(["envelope"])),
        "expected envelope of type binary, got none",
    ),
    "envelopes as text": (
        {},
        with_table(
            lambda table: table.drop_columns(["envelope"]).append_column(
                "envelope", pa.array(["x"] * len(table))
            )
        ),
        "expected envelope of type binary, got string",
    ),
    "two columns of one name": (
        {},
        with_table(lambda table: table.append_column("Envelope", table["envelope"])),
        "expected envelope of type binary, got binary and binary",
    ),
    "no Parquet": ({}, with_bytes(lambda content: b"none"), "expected Parquet"),
    "pages of zeros": ({}, with_bytes(zeroed), "its export cannot be read"),
    "cut in the middle": ({}, with_bytes(lambda content: content[:200]), "expected Parquet"),
}

UNREADABLE = {"envelope": b"\xff"}
COMPARED: dict[str, tuple[Damage, list[tuple[str, int]]]] = {
    "honest": (nothing, []),
    "only the columns that are read": (
        with_table(lambda table: table.select(["envelope", "sequence_id"])),
        [],
    ),
    "begins in the middle": (about(from_block=12), []),
    "begins at its end": (about(from_block=20), []),
    "derived columns null": (with_first(sequence_id=None, block_number=None, topic=None), []),
    "derived sequence of another": (with_first(sequence_id=Decimal(5)), []),
    "garbage under no sequence": (
        with_first(sequence_id=None, **UNREADABLE),
        [("ENVELOPE_MISSING", 1), ("ENVELOPE_UNREADABLE", 0)],
    ),
    "garbage under less than none": (
        with_first(sequence_id=Decimal(-1), **UNREADABLE),
        [("ENVELOPE_MISSING", 1), ("ENVELOPE_UNREADABLE", 0)],
    ),
    "garbage above the highest": (
        with_first(sequence_id=Decimal(2**64), **UNREADABLE),
        [("ENVELOPE_MISSING", 1), ("ENVELOPE_UNREADABLE", 0)],
    ),
    "garbage under the highest": (
        with_first(sequence_id=Decimal(2**64 - 1), **UNREADABLE),
        [("ENVELOPE_MISSING", 1), ("ENVELOPE_UNREADABLE", 2**64 - 1)],
    ),
}

NODE_IDS = dict(zip([*SET_ASIDE, *COMPARED], count(100, 100), strict=False))


@pytest.fixture(scope="module")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root = tmp_path_factory.mktemp("hostile")
    cases = {name: (about, damage) for name, (about, damage, _) in SET_ASIDE.items()}
    cases |= {name: ({}, damage) for name, (damage, _) in COMPARED.items()}
    nodes = []
    for name, (about, damage) in cases.items():
        key = key_of(NODE_IDS[name])
        node = write_node(root / str(NODE_IDS[name]), honest(base_posts(), key), key, **about)
        damage(node)
        nodes.append((None, node))
    registry = [registered(node_id, log_index=n) for n, node_id in enumerate(NODE_IDS.values())]
    chain = write_chain(root / "chain", base_posts(), registry)
    return run_audit(spark.sparkContext, read_inputs(chain, nodes))


@pytest.mark.parametrize("case", SET_ASIDE)
def test_audit__one_nodes_export_is_unusable__it_alone_is_set_aside(
    hostile: Audit, case: str
) -> None:
    set_aside = hostile.scope.comparability.set_aside

    assert SET_ASIDE[case][2] in set_aside[NODE_IDS[case]]
    assert "\n" not in set_aside[NODE_IDS[case]]
    assert NODE_IDS[case] not in hostile.counts
    assert set(set_aside) == {NODE_IDS[name] for name in SET_ASIDE}


@pytest.mark.parametrize("case", COMPARED)
def test_audit__columns_beside_the_envelope__change_no_finding(hostile: Audit, case: str) -> None:
    own = [row for row in hostile.findings if row["node_id"] == NODE_IDS[case]]

    assert sorted((row["code"], int(row["sequence_id"])) for row in own) == COMPARED[case][1]
    assert hostile.counts[NODE_IDS[case]]["served"] == 7
