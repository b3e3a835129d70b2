"""Every kind of fault is found, alone and among all others, and nothing else; SQL agrees."""

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.audit.commands import findings
from benchmarks.audit.exports.generate import Exports, generate
from benchmarks.audit.exports.shape import Shape
from benchmarks.audit.faults.inject import Injection
from benchmarks.audit.faults.innocent import INNOCENT
from benchmarks.audit.faults.kinds import KINDS
from benchmarks.audit.faults.plan import (
    Fault,
    Finding,
    Plan,
    findings_of,
    plan_once,
    plan_together,
)
from benchmarks.audit.oracle import count
from chainkit_jobs.reconcile.screening import runner
from support.command_line import run
from support.seeds import IS_SOAK

FAULTY_NODES = 6
NODES = FAULTY_NODES + len(INNOCENT)
ONCE = Shape(2_000, NODES, rows_per_block=20, range_blocks=30, is_signed=True)
ROWS = 20_000 if IS_SOAK else 5_000
TOGETHER = Shape(ROWS, rows_per_block=20, range_blocks=ROWS // 70, is_signed=True)
FAULTS, CHAIN_FAULTS = ROWS // 11, ROWS // 500

pytestmark = pytest.mark.usefixtures("spark")


@dataclass(frozen=True)
class Audited:
    """Exports, what was injected into them, and what the audit said."""

    plan: Plan
    exports: Exports
    code: int
    summary: dict[str, Any]
    found: Counter[Finding]

    @property
    def counts(self) -> dict[int, dict[str, int]]:
        """The audit's counts for each node that it compared, as the oracle counts."""
        return {
            node["node_id"]: {"expected": node["expected"], "matched": node["matched"]}
            | node["findings"]
            for node in self.summary["nodes"]
            if node["compared"]
        }


def audited(folder: Path, exports: Exports, plan: Plan, *options: str) -> Audited:
    nodes = [word for path in exports.nodes.values() for word in ("--node", path)]
    out = folder / "audit"
    outcome = run(
        *("audit", "reconcile", "--chain", exports.chain, *nodes, "--out", out, "--json"),
        *("--without-costs", *options),
    )
    assert outcome.code in (0, 1, 2), outcome.err
    return Audited(plan, exports, outcome.code, outcome.content, findings(out))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """Each kind once, and besides nodes that are innocent in some way."""
    folder = tmp_path_factory.mktemp("once")
    faulty, innocent = ONCE.node_ids[:FAULTY_NODES], ONCE.node_ids[FAULTY_NODES:]
    plan = plan_once(ONCE, faulty)
    exports = generate(folder / "exports", ONCE, Injection(plan), has_expected=True)
    for node_id, change in zip(innocent, INNOCENT.values(), strict=True):
        change(exports.nodes[node_id])
    yield audited(folder, exports, plan)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """All kinds again and again at random, in the chain's export too."""
    folder = tmp_path_factory.mktemp("together")
    plan = plan_together(TOGETHER, FAULTS, CHAIN_FAULTS)
    exports = generate(folder / "exports", TOGETHER, Injection(plan), has_expected=True)
    yield audited(folder, exports, plan)
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_reconcile__one_fault_of_a_kind__is_found_and_nothing_beside_it(
    once: Audited, kind: str
) -> None:
    [fault] = [each for each in once.plan.faults if each.kind == kind]
    expected = Counter(findings_of(ONCE, fault))

    assert near(once.found, fault) == expected


def near(found: Counter[Finding], fault: Fault) -> Counter[Finding]:
    """Findings about the node at the sequences of a fault, and where the fault leads."""
    places = {(0, sequence_id) for sequence_id in range(fault.first - 1, fault.first + 6)}
    places |= {each[2:] for each in findings_of(ONCE, fault)}
    mine = {each: n for each, n in found.items() if each.node_id == fault.node_id}
    return Counter({each: n for each, n in mine.items() if each[2:] in places})


def test_reconcile__each_kind_once__finds_them_all_and_invents_nothing(once: Audited) -> None:
    expected = Counter(once.plan.findings())

    assert (expected - once.found, once.found - expected) == (Counter(), Counter())
    assert {each.node_id for each in once.found} == set(ONCE.node_ids[:FAULTY_NODES])


def test_reconcile__more_doubt_than_the_driver_takes__is_judged_by_spark_to_the_same_bytes(
    once: Audited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "FEW_BYTES", -1)

    audited(tmp_path, once.exports, once.plan)

    for name in ("findings.jsonl", "coverage.jsonl", "summary.json", "report.html"):
        before = once.exports.directory.parent / "audit" / name
        assert (tmp_path / "audit" / name).read_bytes() == before.read_bytes()


def test_reconcile__nodes_that_cover_less__are_held_to_what_they_cover_alone(once: Audited) -> None:
    names = dict(zip(INNOCENT, ONCE.node_ids[FAULTY_NODES:], strict=True))
    assert (once.code, sorted(once.counts)) == (1, sorted(ONCE.node_ids))
    whole = once.counts[names["in_other_order"]]

    for name in ("behind", "waiting_for_finality", "beginning_later"):
        counts = once.counts[names[name]]
        assert 0 < counts["expected"] < whole["expected"]
        assert counts == {"expected": counts["expected"], "matched": counts["expected"]}
    assert once.counts[names["in_other_files"]] == whole


def test_reconcile__all_kinds_together__finds_them_all_and_invents_nothing(
    together: Audited,
) -> None:
    expected = Counter(together.plan.findings())

    assert together.code == 1
    assert expected.total() > FAULTS
    assert (expected - together.found, together.found - expected) == (Counter(), Counter())


@pytest.mark.parametrize("name", ["once", "together"])
def test_count__by_sql_over_the_same_files__is_what_the_audit_counts(
    name: str, request: pytest.FixtureRequest
) -> None:
    audit: Audited = request.getfixturevalue(name)
    by_sql = {node: nonzero(counts) for node, counts in count(audit.exports).items()}

    for node_id, counts in audit.counts.items():
        counts.pop("SIGNATURE_INVALID", None)
        # SQL reads what an envelope says, not how its outer message is written.
        counts.pop("ENVELOPE_FORM_DIFFERS", None)
        assert by_sql[node_id] == nonzero(counts)


def nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


def test_reconcile__without_signatures__finds_all_the_others(once: Audited, tmp_path: Path) -> None:
    again = audited(tmp_path, once.exports, once.plan, "--without-signatures")

    assert again.found == Counter(once.plan.findings(checks_signatures=False))
