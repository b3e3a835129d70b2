"""Whatever one node's export is, the others are compared, and never accused.

Each case is a whole audit, whose tasks run here instead of on Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from chainkit_jobs.reconcile.audit import run_audit
from chainkit_jobs.reconcile.scope import Options
from support.audit.audit_exports import (
    base_posts,
    honest,
    key_of,
    registered,
    write_chain,
    write_node,
)
from support.audit.hostile_exports import Hostile, hostile_exports
from support.audit.inputs import read_inputs
from support.audit.node_tables import honest_tables, write_tables
from support.seeds import cases_of_the_day

A, B, HOSTILE = 100, 200, 300
CASES = hostile_exports(A)


class Tasks:
    """Does in this process what Spark's workers do."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items

    def foreach(self, act: Callable[[Any], None]) -> None:
        for item in self._items:
            act(item)


class Here:
    """A context without a cluster."""

    master = "local"

    def parallelize(self, items: Iterable[Any], pieces: int) -> Tasks:
        return Tasks(items)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scene")
    registry = [registered(each, log_index=n) for n, each in enumerate((A, B, HOSTILE))]
    write_chain(root / "chain", base_posts(), registry)
    for name, node_id in (("a", A), ("b", B)):
        key = key_of(node_id)
        write_node(root / name, honest(base_posts(), key), key, is_table_right=True)
    key = key_of(HOSTILE)
    write_tables(root / "base", HOSTILE, key, honest_tables(base_posts(), key))
    return root


def test_hostile_exports__all__are_many_and_each_another() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 200


@pytest.mark.parametrize("case", cases_of_the_day(CASES, 5), ids=lambda case: case.name)
def test_audit__one_export_is_hostile__the_honest_are_compared_and_not_accused(
    scene: Path, tmp_path: Path, case: Hostile
) -> None:
    export = tmp_path / "c"
    shutil.copytree(scene / "base", export)
    case.change(export)
    context: Any = Here()
    nodes = [(None, path) for path in (scene / "a", scene / "b", export)]

    inputs = read_inputs(scene / "chain", nodes)
    audit = run_audit(context, inputs, options=Options(work=tmp_path / "work"))

    honest_counts = {"expected": 7, "served": 7, "matched": 7, "outside": 0, "undecided": 0}
    for node_id in (A, B):
        assert audit.counts[node_id] == {"node_id": node_id} | honest_counts
    assert {row["node_id"] for row in audit.findings} <= {HOSTILE}
    assert (HOSTILE in audit.counts) is not case.is_set_aside
    assert len(audit.reasons) == case.is_set_aside
    rows = [node.node.node_id for node in audit.scope.nodes]
    refused = [(each.folder, each.reason) for each in audit.scope.comparability.refused]
    assert refused == ([] if HOSTILE in rows else [(str(export), audit.reasons[0])])
    for sentence in audit.reasons:
        assert str(export) in sentence or sentence.startswith(f"node {HOSTILE}: ")
        assert sentence.isprintable()
        assert len(sentence) < 1_000
