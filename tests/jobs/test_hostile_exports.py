"""Hostile exports on Spark, with their tables: many in one audit, beside two honest nodes.

Cases that Spark does not see are in tests/unit/jobs/reconcile/test_hostile_exports.py.
"""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from chainkit.exports import reading
from support.audit.audit_exports import (
    base_posts,
    key_of,
    registered,
    write_chain,
)
from support.audit.hostile_exports import hostile_exports
from support.audit.node_tables import honest_tables, registry_rows, write_tables
from support.audit.reconcile_command import A, B, reconcile

pytestmark = pytest.mark.usefixtures("spark")

Change = Callable[[Path], None]

BY_NAME = {case.name: case.change for case in hostile_exports(A)}

SET_ASIDE = (
    "manifest.json is a pipe",
    "envelopes.parquet is a link to a device",
    "journal.parquet is a pipe",
    "envelopes.envelope: capitals",
    "another node's key",
    "another chain",
)
UNKNOWN = "compressed by brotli"
TABLES = {
    UNKNOWN: "columns beside the envelopes",
    "quarantine.block_number: another type": "quarantine",
    "envelopes.log_index: capitals": "columns beside the envelopes",
    "journal.envelope: none": "journal",
}


CASES: dict[str, Change] = {name: BY_NAME[name] for name in (*SET_ASIDE, *TABLES)}
IDS = dict(zip(CASES, count(300, 100), strict=False))


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a codec pass that Arrow reads and Spark does not, as one would that nobody thought of."""
    monkeypatch.setattr(reading, "CODECS", (*reading.CODECS, "BROTLI"))


def audited(root: Path, **about: Any) -> tuple[Result, dict[str, Any]]:
    registry = [registered(each, log_index=n) for n, each in enumerate((A, B, *IDS.values()))]
    posts = about.pop("posts", base_posts())
    chain = write_chain(root / "chain", posts, registry, **about)
    nodes: list[Path | str] = []
    for node_id, change in {
        A: None,
        B: None,
        **dict(zip(IDS.values(), CASES.values(), strict=True)),
    }.items():
        export, key = root / str(node_id), key_of(node_id)
        write_tables(export, node_id, key, honest_tables(base_posts(), key, registry_rows(chain)))
        if change is not None:
            change(export)
        nodes.append(export)
    result = reconcile(chain, nodes, root / "audit", "--tables")
    return result, json.loads((root / "audit" / "summary.json").read_text())


def set_aside(root: Path, summary: dict[str, Any]) -> dict[str, str]:
    """Return each case with its sentence, by the node's id or folder in it."""
    found = {}
    for sentence in summary["set_aside"]:
        [name] = [
            name
            for name, node_id in IDS.items()
            if sentence.startswith(f"node {node_id}: ") or str(root / str(node_id)) in sentence
        ]
        found[name] = sentence
    return found


def test_reconcile__many_hostile_exports__each_is_named_and_the_honest_are_compared(
    tmp_path: Path,
) -> None:
    result, summary = audited(tmp_path)

    assert result.exit_code == 2, result.output
    sentences = set_aside(tmp_path, summary)
    assert set(sentences) == set(CASES)
    for name, table in TABLES.items():
        assert sentences[name].startswith(f"node {IDS[name]}: its {table} cannot be read: ")
    compared = {node["node_id"]: node["matched"] for node in summary["nodes"] if node["compared"]}
    named = {IDS[name] for name in TABLES}
    assert compared == dict.fromkeys(sorted({A, B, *named}), 7)
    assert summary["findings"] == {}
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "Not everything could be compared" in page
    pipe, thief = (
        str(tmp_path / str(IDS[name])) for name in ("manifest.json is a pipe", "another node's key")
    )
    assert [each["folder"] for each in summary["refused"]] == [pipe, thief]
    for folder in (pipe, thief):
        assert f'<span class="soft">{folder}</span>' in page
        assert f"not compared: ...{folder[-40:]}\n" in result.stdout


def test_reconcile__chain_export_is_broken_and_spark_judges__the_unreadable_is_set_aside(
    tmp_path: Path,
) -> None:
    posts = [post for post in base_posts() if post.sequence_id != 6]

    _, summary = audited(tmp_path, posts=posts)

    compared = {node["node_id"]: node for node in summary["nodes"] if node["compared"]}
    assert IDS[UNKNOWN] not in compared
    assert "Spark fails on it" in set_aside(tmp_path, summary)[UNKNOWN]
    assert summary["findings"]["CHAIN_SEQUENCE_GAP"] == 1
    for node_id in (A, B):
        assert (compared[node_id]["matched"], compared[node_id]["findings"]) == (6, {})
