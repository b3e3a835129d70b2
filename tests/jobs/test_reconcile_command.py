"""`chainkit audit reconcile`: exit codes, ranges and outputs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.audit.audit_exports import (
    Post,
    base_posts,
    hash_of,
    honest,
    key_of,
    registered,
    write_chain,
    write_node,
    write_scene,
)
from support.audit.reconcile_command import TABLES, A, B, chain_of, node_of, reconcile

pytestmark = pytest.mark.usefixtures("spark")


def test_reconcile__all_honest__exits_0_and_writes_every_output(tmp_path: Path) -> None:
    out = tmp_path / "audit"

    result = reconcile(chain_of(tmp_path), [node_of(tmp_path, A), node_of(tmp_path, B)], out)

    assert result.exit_code == 0, result.output
    assert "0 findings" in result.output
    names = {"findings.parquet", "findings.jsonl", "coverage.parquet", "coverage.jsonl"}
    assert {path.name for path in out.iterdir()} == names | {"summary.json", "report.html"}
    summary = json.loads((out / "summary.json").read_text())
    # Without --trust nothing is clean, and the first line says so.
    assert summary["outcome"] == "no difference found"
    verdict = "no difference found; not proved: the chain export (see --trust)"
    assert result.output.splitlines()[0] == summary["verdict"] == verdict
    assert (
        (out / "summary.json").read_text().startswith('{\n  "assurance": {\n    "complete": false')
    )
    page = (out / "report.html").read_text()
    assert "<b>No difference found.</b> Not proved: the chain" in page
    assert "beside their envelopes: see --tables</li>" in page
    assert summary["not_compared"] == [TABLES]
    assert f"not compared: {TABLES}" in result.stdout.splitlines()
    assert "\ncompared beside" not in result.stdout
    assert summary["tables_compared"] is None
    assert [(n["node_id"], n["matched"]) for n in summary["nodes"]] == [(A, 7), (B, 7)]
    assert summary["chain"]["quarantined"] == 1


def test_reconcile__with_tables__columns_that_lie_are_found_and_what_is_lacking_is_named(
    tmp_path: Path,
) -> None:
    out = tmp_path / "audit"
    nodes = [node_of(tmp_path, A), node_of(tmp_path, B)]

    result = reconcile(chain_of(tmp_path), nodes, out, "--tables")

    assert result.exit_code == 1, result.output
    summary = json.loads((out / "summary.json").read_text())
    # The columns say block 0, before the export begins.
    expected = {"ENVELOPE_COLUMNS_CONTRADICT": 14, "NODE_CURSOR_CONTRADICTS": 2}
    assert summary["findings"] == expected
    assert [(n["node_id"], n["matched"]) for n in summary["nodes"]] == [(A, 7), (B, 7)]
    assert TABLES not in summary["not_compared"]
    # These exports contain no other table.
    nobody = {"quarantine": [], "journal": [], "registry_updates": []}
    assert summary["tables_compared"] == {"envelopes": [A, B]} | nobody
    words = " ".join(result.stdout.split())
    assert (
        "compared beside the envelopes: other columns of 2 nodes, quarantine of 0 nodes, journal "
        "of 0 nodes, the registry's history of 0 nodes, and the manifests of all nodes compared"
    ) in words
    assert any("journal" in sentence for sentence in summary["not_compared"])


def test_reconcile__same_inputs_again_with_a_work_folder__are_not_compared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = chain_of(tmp_path)
    envelopes = honest(base_posts()[1:], key_of(B))
    nodes = [node_of(tmp_path, A), write_node(tmp_path / "node-b", envelopes, key_of(B))]
    work = str(tmp_path / "work")
    first = reconcile(chain, nodes, tmp_path / "first", "--work", work)
    monkeypatch.setattr("chainkit_jobs.cli.reconcile.run_audit", None)

    again = reconcile(chain, nodes[::-1], tmp_path / "again", "--work", work)
    with pytest.raises(TypeError):
        reconcile(chain, nodes, tmp_path / "others", "--work", work, "--without-signatures")

    assert first.exit_code == again.exit_code == 1
    assert again.output.replace("again", "first") == first.output
    for path in (tmp_path / "first").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_reconcile__kept_audit_was_changed__is_made_again(tmp_path: Path) -> None:
    chain, work = chain_of(tmp_path), tmp_path / "work"
    nodes: list[Path | str] = [node_of(tmp_path, A), node_of(tmp_path, B)]
    reconcile(chain, nodes, tmp_path / "first", "--work", str(work))
    [kept] = (work / "audits").iterdir()
    summary = kept / "summary.json"
    summary.write_text(summary.read_text().replace('"matched": 7', '"matched": 8'))

    again = reconcile(chain, nodes, tmp_path / "again", "--work", str(work))

    assert again.exit_code == 0, again.output
    for path in (tmp_path / "first").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
        assert (kept / path.name).read_bytes() == path.read_bytes()


def test_reconcile__a_file_changed_after_the_audit_was_kept__is_not_answered_from_it(
    tmp_path: Path,
) -> None:
    chain, work = chain_of(tmp_path), str(tmp_path / "work")
    nodes: list[Path | str] = [node_of(tmp_path, A), node_of(tmp_path, B)]
    reconcile(chain, nodes, tmp_path / "first", "--work", work)
    (tmp_path / f"node-{B}" / "envelopes.parquet").write_bytes(b"")

    again = reconcile(chain, nodes, tmp_path / "again", "--work", work)

    assert again.exit_code == 2
    assert "node 200: its export cannot be used: " in again.stderr


def test_reconcile__one_node_omits__exits_1_and_tables_agree(tmp_path: Path) -> None:
    chain, nodes = write_scene(tmp_path, {A: honest, B: lambda p, key: honest(p[1:], key)})
    out = tmp_path / "audit"

    result = reconcile(chain, [path for _, path in nodes], out, "--json")

    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["findings"] == {"ENVELOPE_MISSING": 1}
    # One grade less than where the chain export is proved.
    assert json.loads(result.stdout)["severities"] == {"minor": 1}
    assert result.stdout.startswith('{\n  "assurance": {')
    [row] = pq.read_table(out / "findings.parquet").to_pylist()
    [line] = [json.loads(line) for line in (out / "findings.jsonl").read_text().splitlines()]
    assert row["finding_id"] == line["finding_id"]
    assert line["sequence_id"] == "1"
    assert line["expected_digest"] == "0x" + row["expected_digest"].hex()
    assert row["finding_id"] in (out / "report.html").read_text()


def test_reconcile__split_otherwise__gives_the_same_bytes(
    tmp_path: Path, spark: SparkSession
) -> None:
    chain, nodes = write_scene(
        tmp_path, {A: honest, B: lambda p, key: honest(p[2:], key)[::-1] * 2}
    )
    settings = {
        "spark.sql.shuffle.partitions": ("2", "7"),
        "spark.sql.execution.arrow.maxRecordsPerBatch": ("2000", "1"),
        "spark.sql.files.maxPartitionBytes": ("128m", "600"),
        "spark.sql.adaptive.enabled": ("true", "false"),
    }
    outputs = []
    for run in (0, 1):
        for name, values in settings.items():
            spark.conf.set(name, values[run])
        out = tmp_path / f"audit-{run}"
        reconcile(chain, [path for _, path in nodes], out)
        outputs.append({path.name: path.read_bytes() for path in out.iterdir()})
    for name, values in settings.items():
        spark.conf.set(name, values[0])

    assert len(outputs[0]) == 6
    assert outputs[0] == outputs[1]


def test_reconcile__node_behind__is_compared_up_to_its_last_block(tmp_path: Path) -> None:
    behind = base_posts()[:5]
    node = write_node(tmp_path / "behind", honest(behind, key_of(B)), key_of(B), to_block=14)
    out = tmp_path / "audit"

    result = reconcile(chain_of(tmp_path), [node_of(tmp_path, A), node], out)

    assert result.exit_code == 0, result.output
    summary = json.loads((out / "summary.json").read_text())
    assert summary["not_compared"] == [
        "node 200: blocks 15 to 20, which its export does not reach",
        TABLES,
    ]
    assert [node["expected"] for node in summary["nodes"]] == [7, 4]


def test_reconcile__node_lacks_the_payload_of_its_last_block__is_missing(tmp_path: Path) -> None:
    lacking = honest(base_posts()[:5], key_of(B))
    node = write_node(tmp_path / "lacking", lacking, key_of(B), to_block=15)

    result = reconcile(chain_of(tmp_path), [node_of(tmp_path, A), node], tmp_path / "audit")

    assert result.exit_code == 1
    assert "ENVELOPE_MISSING 1" in result.output


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"to_block": 21}, "its export ends at block 21, beyond the chain export's last block 20"),
        ({"to_block_hash": "0x" + hash_of(20, "other").hex()}, "ends on another fork"),
    ],
)
def test_reconcile__node_beyond_or_on_a_fork__exits_2_and_compares_the_rest(
    tmp_path: Path, about: dict[str, Any], sentence: str
) -> None:
    out = tmp_path / "audit"
    nodes: list[Path | str] = [node_of(tmp_path, A), node_of(tmp_path, B, **about)]

    result = reconcile(chain_of(tmp_path), nodes, out)

    assert result.exit_code == 2
    assert sentence in result.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["outcome"] == "could not compare"
    assert [(n["compared"], n["matched"]) for n in summary["nodes"]] == [(True, 7), (False, None)]
    assert sentence in summary["not_compared"][0]
    assert "Not everything could be compared" in (out / "report.html").read_text()


def test_reconcile__chain_export_begins_later__older_sequences_accuse_nobody(
    tmp_path: Path,
) -> None:
    registry = [registered(A, block=12), registered(B, block=12, log_index=1)]
    chain = write_chain(tmp_path / "chain", base_posts(), registry, from_block=12)
    out = tmp_path / "audit"

    result = reconcile(chain, [node_of(tmp_path, A), node_of(tmp_path, B)], out)

    assert result.exit_code == 0, result.output
    assert json.loads((out / "summary.json").read_text())["not_compared"] == [
        "node 100: blocks 1 to 11, before the chain export begins",
        "node 200: blocks 1 to 11, before the chain export begins",
        "who ruled the contracts, their pauses and payload bounds: the chain export begins after "
        "their deployment",
        "node 100: 2 sequences that the chain export lacks or repeats, though the contracts "
        "must have given them out",
        "node 200: 2 sequences that the chain export lacks or repeats, though the contracts "
        "must have given them out",
        TABLES,
    ]


def test_reconcile__chain_lacks_and_repeats__chain_is_found_and_no_node(tmp_path: Path) -> None:
    posts = base_posts()
    repeated = replace(posts[7], transaction=b"\x08" * 32, block=19)
    posts = [post for post in posts if post.sequence_id not in (2, 3, 6)] + [repeated]
    chain = write_chain(tmp_path / "chain", posts, [registered(A), registered(B, log_index=1)])
    out = tmp_path / "audit"

    result = reconcile(chain, [node_of(tmp_path, A), node_of(tmp_path, B)], out)

    assert result.exit_code == 1, result.output
    rows = pq.read_table(out / "findings.parquet").to_pylist()
    assert [(row["code"], int(row["sequence_id"]), row["detail"]) for row in rows] == [
        ("CHAIN_SEQUENCE_GAP", 2, "sequences 2 to 3"),
        ("CHAIN_SEQUENCE_GAP", 6, "sequence 6"),
        ("CHAIN_SEQUENCE_REPEATED", 8, "held 2 times"),
    ]


def test_reconcile__no_payload_anywhere_but_one_node_invents__is_found(tmp_path: Path) -> None:
    chain = write_chain(tmp_path / "chain", [], [registered(A), registered(B, log_index=1)])
    empty = write_node(tmp_path / "empty", [], key_of(A))
    inventing = write_node(tmp_path / "inventing", [base_posts()[0].envelope(key_of(B))], key_of(B))
    out = tmp_path / "audit"

    result = reconcile(chain, [empty, inventing], out)

    assert result.exit_code == 1, result.output
    assert json.loads((out / "summary.json").read_text())["findings"] == {"ENVELOPE_INVENTED": 1}


def test_reconcile__counters_end_is_not_known__honest_nodes_differ_in_nothing(
    tmp_path: Path,
) -> None:
    chain = chain_of(tmp_path, sequence_before=None, sequence_after=None)
    out = tmp_path / "audit"

    result = reconcile(chain, [node_of(tmp_path, A), node_of(tmp_path, B)], out)

    assert result.exit_code == 0, result.output
    first, second, *_ = result.output.splitlines()
    assert first == (
        "no difference found; not proved: the chain export (see --trust); not known: the end of the"
    )
    assert second == "contracts' counter"
    summary = json.loads((out / "summary.json").read_text())
    assert summary["undecided"] == []
    assert summary["not_compared"][0].startswith(
        "whether payloads follow the last one of the chain"
    )


def test_reconcile__counters_end_is_not_known_and_one_node_invents__exits_2(
    tmp_path: Path,
) -> None:
    chain = chain_of(tmp_path, sequence_before=None, sequence_after=None)
    invented = [*honest(base_posts(), key_of(B)), Post(9, 18, b"invented").envelope(key_of(B))]
    node = write_node(tmp_path / "inventing", invented, key_of(B))
    out = tmp_path / "audit"

    result = reconcile(chain, [node_of(tmp_path, A), node], out)

    assert result.exit_code == 2, result.output
    assert "clean" not in result.output.lower()
    assert result.output.startswith("could not decide; not proved: the chain export")
    assert "error: node 200: 1 sequence above 8, the last that the chain export contains" in (
        result.stderr
    )
    assert "none, undecided 1" in result.output
    page = (out / "report.html").read_text()
    assert "Not everything could be decided" in page
    assert "undecided 1" in page


def test_reconcile__without_signatures__claims_none(tmp_path: Path) -> None:
    altered = [replace(post, payload=base_posts()[0].payload) for post in base_posts()[2:3]]
    envelopes = honest([*base_posts()[:2], *altered, *base_posts()[3:]], key_of(B))
    nodes = [node_of(tmp_path, A), write_node(tmp_path / "altering", envelopes, key_of(B))]
    out = tmp_path / "audit"

    result = reconcile(chain_of(tmp_path), nodes, out, "--without-signatures")

    assert result.exit_code == 1, result.output
    verdict = "1 finding; not proved: the chain export (see --trust); not checked: signatures"
    assert result.output.splitlines()[0] == verdict
    summary = json.loads((out / "summary.json").read_text())
    assert summary["assurance"]["lacking"] == [
        *("not proved: the chain export (see --trust)", "not checked: signatures"),
    ]
    assert summary["severities"] == {"major": 1}
    page = (out / "report.html").read_text()
    assert '<span class="severity major">major</span>' in page
    assert '<span class="severity critical">' not in page
    assert "under its own" not in page


def test_reconcile__disabled_node__is_compared_and_shown_as_disabled(tmp_path: Path) -> None:
    registry = [
        registered(A),
        registered(B, log_index=1),
        registered(B, block=19, is_enabled=False),
    ]
    chain = write_chain(tmp_path / "chain", base_posts(), registry)
    out = tmp_path / "audit"

    result = reconcile(chain, [node_of(tmp_path, A), node_of(tmp_path, B)], out)

    assert result.exit_code == 0, result.output
    summary = json.loads((out / "summary.json").read_text())
    assert [(n["is_enabled"], n["matched"]) for n in summary["nodes"]] == [(True, 7), (False, 7)]


def test_reconcile__signed_by_another_than_its_manifest_names__every_signature_is_wrong(
    tmp_path: Path,
) -> None:
    foreign = write_node(tmp_path / "foreign", honest(base_posts(), key_of(300)), key_of(B))

    result = reconcile(chain_of(tmp_path), [node_of(tmp_path, A), foreign], tmp_path / "audit")

    assert result.exit_code == 1
    assert "SIGNATURE_INVALID 7" in result.output
