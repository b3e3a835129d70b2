"""`chainkit audit report-misbehavior`: a finding becomes a signed report, or a clear refusal."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from eth_account import Account
from pyspark.sql import SparkSession

from chainkit.cli.main import chainkit
from chainkit.errors import ChainkitError, ConfigurationError
from chainkit.protocol.reports import parse_inconsistency_report
from chainkit.signatures import SigningKey
from chainkit_jobs.reconcile.audit import run_audit
from chainkit_jobs.reconcile.outputs import write_outputs
from support.audit.audit_exports import Post, base_posts, honest, key_of, write_scene
from support.audit.inputs import read_inputs
from support.payloads import commit

SECRET = b"\x07" * 32
HONEST, FAULTY = 100, 200
OTHER = commit(b"\x01" * 32, size=50, seed=5)


def faulty(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
    """Alters 3, omits 5, invents 9 and 0, serves the malformed 4; a stranger signs 6 and 7."""
    kept = [post for post in posts if post.sequence_id not in (3, 5, 6, 7)]
    return [
        *honest(kept, key),
        posts[3].envelope(key),
        replace(posts[2], payload=OTHER).envelope(key),
        posts[5].envelope(key_of(5)),
        replace(posts[6], payload=OTHER).envelope(key_of(5)),
        replace(posts[7], sequence_id=9).envelope(key),
        replace(posts[7], sequence_id=0).envelope(key),
    ]


@pytest.fixture(scope="module")
def findings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("audit")
    chain, nodes = write_scene(root, {HONEST: honest, FAULTY: faulty})
    write_outputs(root / "out", run_audit(spark.sparkContext, read_inputs(chain, nodes)))
    return root / "out"


def identity(findings: Path, code: str, sequence_id: int) -> str:
    rows = pq.read_table(findings / "findings.parquet").to_pylist()
    [row] = [r for r in rows if (r["code"], int(r["sequence_id"])) == (code, sequence_id)]
    return str(row["finding_id"])


def report(tmp_path: Path, findings: Path, finding: str, *options: str) -> Result:
    keystore, password = tmp_path / "key.json", tmp_path / "password"
    keystore.write_text(json.dumps(Account.encrypt(SECRET, "secret", iterations=2)))
    password.write_text("secret\n")
    arguments = ["--findings", str(findings), "--finding", finding, "--keystore", str(keystore)]
    arguments += ["--password-file", str(password), "--out", str(tmp_path / "report.bin"), *options]
    return CliRunner().invoke(chainkit, ["audit", "report-misbehavior", *arguments])


@pytest.mark.parametrize(("code", "sequence"), [("ENVELOPE_ALTERED", 3), ("ENVELOPE_INVENTED", 9)])
def test_report_misbehavior__signed_contradiction__is_a_report_with_the_served_bytes(
    tmp_path: Path, findings: Path, code: str, sequence: int
) -> None:
    began = time.time_ns()

    result = report(tmp_path, findings, identity(findings, code, sequence)[:16])

    assert result.exit_code == 0, result.output
    parsed = parse_inconsistency_report((tmp_path / "report.bin").read_bytes())
    post = base_posts()[2]
    served = {
        3: replace(post, payload=OTHER).envelope(key_of(FAULTY)),
        9: replace(base_posts()[7], sequence_id=9).envelope(key_of(FAULTY)),
    }
    assert parsed.envelopes == (served[sequence],)
    assert parsed.misbehaving_node_id == FAULTY
    assert parsed.reporter_public_key == SigningKey(SECRET).public_key
    assert began <= parsed.reporter_time_ns <= time.time_ns()


@pytest.mark.parametrize(
    ("code", "sequence", "words"),
    [
        ("ENVELOPE_ALTERED", 3, "proved          the transaction posts another payload"),
        ("ENVELOPE_INVENTED", 9, "not proved      the chain export does not contain"),
        ("ENVELOPE_INVENTED", 0, "proved          the envelope has sequence id 0"),
    ],
)
def test_report_misbehavior__with_the_chain__says_what_the_council_will_find(
    tmp_path: Path, findings: Path, code: str, sequence: int, words: str
) -> None:
    chain = ("--chain", str(findings.parent / "chain"))

    result = report(tmp_path, findings, identity(findings, code, sequence), *chain)

    assert result.exit_code == 0, result.output
    assert f"\n{words}" in result.output
    assert (tmp_path / "report.bin").exists()


def test_report_misbehavior__without_the_chain__says_that_nothing_was_judged(
    tmp_path: Path, findings: Path
) -> None:
    result = report(tmp_path, findings, identity(findings, "ENVELOPE_INVENTED", 9))

    assert "\nnot judged      give --chain to know" in result.output


def test_report_misbehavior__chain_of_another_audit__is_refused(
    tmp_path: Path, findings: Path
) -> None:
    chain, _ = write_scene(tmp_path, {HONEST: honest}, base_posts()[:3])

    finding = identity(findings, "ENVELOPE_ALTERED", 3)
    result = report(tmp_path, findings, finding, "--chain", str(chain))

    assert isinstance(result.exception, ChainkitError)
    assert "expected the chain export of audit" in str(result.exception)
    assert not (tmp_path / "report.bin").exists()


@pytest.mark.parametrize(
    ("code", "sequence", "message"),
    [
        ("ENVELOPE_MISSING", 5, "expected an envelope that the node served and signed, got none"),
        ("QUARANTINED_SERVED", 4, "expected one of ENVELOPE_ALTERED, ENVELOPE_INVENTED"),
        ("SIGNATURE_INVALID", 6, "expected one of ENVELOPE_ALTERED, ENVELOPE_INVENTED"),
        ("ENVELOPE_ALTERED", 7, "expected a signature by the registered key of node 200"),
    ],
)
def test_report_misbehavior__no_proof__is_refused_and_nothing_written(
    tmp_path: Path, findings: Path, code: str, sequence: int, message: str
) -> None:
    result = report(tmp_path, findings, identity(findings, code, sequence))

    assert isinstance(result.exception, ConfigurationError)
    assert message in str(result.exception)
    assert not (tmp_path / "report.bin").exists()


def test_report_misbehavior__file_exists__is_not_overwritten(
    tmp_path: Path, findings: Path
) -> None:
    (tmp_path / "report.bin").write_text("mine")

    result = report(tmp_path, findings, identity(findings, "ENVELOPE_ALTERED", 3))

    assert isinstance(result.exception, ConfigurationError)
    assert (tmp_path / "report.bin").read_text() == "mine"


@pytest.mark.parametrize("finding", ["f00dfeed" * 8, "abc", ""])
def test_report_misbehavior__id_names_nothing__is_refused(
    tmp_path: Path, findings: Path, finding: str
) -> None:
    result = report(tmp_path, findings, finding)

    assert isinstance(result.exception, ConfigurationError)


def test_report_misbehavior__folder_without_findings__is_refused(tmp_path: Path) -> None:
    result = report(tmp_path, tmp_path, "f00dfeed" * 8)

    assert isinstance(result.exception, ChainkitError)
    assert "expected the output of an audit" in str(result.exception)
