"""An audit keeps its work: a second run does only what is new, and says the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from chainkit_jobs.reconcile.audit import Audit, run_audit
from chainkit_jobs.reconcile.scope import Options
from chainkit_jobs.reconcile.screening import plan, runner
from support.audit.audit_exports import (
    Post,
    base_posts,
    honest,
    registered,
    write_chain,
    write_node,
)
from support.audit.identities import key_of
from support.audit.inputs import read_inputs

Report = Callable[[int], None]

NODES = (100, 200)
REGISTRY = [registered(node_id, log_index=n) for n, node_id in enumerate(NODES)]


def more_posts(last: int) -> list[Post]:
    """The eight of every scene, and others in the blocks after them."""
    model = base_posts()[0]
    return base_posts() + [replace(model, sequence_id=n, block=9 + n) for n in range(9, last + 1)]


def scene(root: Path, last: int) -> tuple[Path, list[tuple[int | None, Path]]]:
    """A chain up to a block, whose second node has one payload wrong."""
    posts = more_posts(last)
    about = {"to_block": 10 + last}
    chain = write_chain(root / "chain", posts, REGISTRY, **about)
    nodes: list[tuple[int | None, Path]] = []
    for node_id in NODES:
        key = key_of(node_id)
        envelopes = honest(posts, key)
        if node_id == NODES[1]:
            envelopes[0] = replace(posts[0], block=11).envelope(key)
        path = write_node(root / f"node-{node_id}", envelopes, key, is_table_right=True, **about)
        nodes.append((None, path))
    return chain, nodes


def told(audit: Audit) -> tuple[object, ...]:
    return audit.counts, audit.findings, audit.coverage, audit.payloads


class Runs:
    """Audits of one scene with one folder for what is kept, and what each of them did."""

    def __init__(self, spark: SparkSession, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self._spark = spark
        do = runner.FolderRunner._do

        def counted(folder: runner.FolderRunner, work: list[runner.Work], report: Report) -> None:
            self.done += [each.name for each in work]
            do(folder, work, report)

        patch.setattr(runner.FolderRunner, "_do", counted)
        # Each log is a unit of its own.
        patch.setattr(plan, "UNIT_ROWS", 1)

    def audit(self, root: Path, last: int, work: Path | None) -> tuple[object, ...]:
        self.done.clear()
        inputs = read_inputs(*scene(root, last))
        return told(run_audit(self._spark.sparkContext, inputs, options=Options(work=work)))


@pytest.fixture
def runs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(spark, monkeypatch)


def test_audit__with_a_folder__a_second_run_does_nothing_and_a_lost_piece_is_done_again(
    runs: Runs, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    first = runs.audit(tmp_path / "a", 8, work)
    everything = list(runs.done)

    again = runs.audit(tmp_path / "b", 8, work)
    of_again = list(runs.done)
    [lost, *_] = sorted(work.glob("*.parquet"))
    lost.unlink()
    after_loss = runs.audit(tmp_path / "c", 8, work)

    assert everything and of_again == []
    assert runs.done == [lost.stem]
    assert first == again == after_loss
    assert first == runs.audit(tmp_path / "d", 8, None)
    assert [row["code"] for row in first[1]] == ["ENVELOPE_ALTERED"]  # type: ignore[attr-defined]
