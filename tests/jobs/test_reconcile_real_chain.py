"""A real chain, exported and reconciled with what its nodes serve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from chainkit.cli.main import chainkit
from chainkit.protocol.envelope import quarantine_reason, sign_originator_envelope
from chainkit.protocol.envelope import unsigned_originator_envelope as unsigned
from chainkit.protocol.events import decode_payload_event
from chainkit.signatures import SigningKey
from chainkit_jobs.sources import log_from_row
from support.audit.audit_exports import key_of, write_node
from support.chains.chain import LocalChain, dev_address
from support.chains.exported_chain import exported, publish, rows_of


def envelopes_of(chain: Path, key: SigningKey) -> list[bytes]:
    """The envelopes that an honest node serves, made from a chain export."""
    times = {row["number"]: row["timestamp"] for row in rows_of(chain, "blocks")}
    manifest = json.loads((chain / "manifest.json").read_text())
    contracts = {
        bytes.fromhex(manifest["contracts"][name][2:])
        for name in ("GroupMessages", "IdentityUpdates")
    }
    logs = [log_from_row(row) for row in rows_of(chain, "logs")]
    posted = [
        (decode_payload_event(log), log)
        for log in logs
        if log.address in contracts and len(log.data) > 3 * 32
    ]
    return [
        sign_originator_envelope(
            unsigned(event, times[log.block_number]), log.transaction_hash, key
        )
        for event, log in posted
        if quarantine_reason(event) is None
    ]


@pytest.mark.usefixtures("spark")
def test_reconcile__export_of_a_real_chain__honest_node_clean_and_other_found(
    local_chain: LocalChain, tmp_path: Path, spark: SparkSession
) -> None:
    keys = [key_of(1), key_of(2)]
    for number, key in enumerate(keys):
        local_chain.add_node(dev_address(3 + number), key.public_key, f"https://n{number}.example")
    publish(local_chain)
    chain = tmp_path / "chain"
    exported(local_chain, chain, "--range-blocks", "8")
    manifest = json.loads((chain / "manifest.json").read_text())
    shared = ("chain_id", "genesis_hash", "contracts", "from_block", "to_block", "to_block_hash")
    about = {name: manifest[name] for name in shared}
    honest, lacking = (envelopes_of(chain, key) for key in keys)
    runs = ((1, 2, "receipts"), (3, 5, "one endpoint"), (6, 6, "receipts"))
    established = [{"from_block": first, "to_block": last, "how": how} for first, last, how in runs]
    nodes = [
        write_node(tmp_path / "honest", honest, keys[0], established=established, **about),
        write_node(tmp_path / "lacking", lacking[:-1], keys[1], **about),
    ]

    result = CliRunner(mix_stderr=False).invoke(
        chainkit,
        ["audit", "reconcile", "--chain", str(chain), "--out", str(tmp_path / "audit"), "--json"]
        + [part for node in nodes for part in ("--node", str(node))],
    )

    summary = json.loads(result.stdout)
    assert len(honest) == 4
    assert [(n["node_id"], n["expected"], n["findings"]) for n in summary["nodes"]] == [
        (100, 4, {}),
        (200, 4, {"ENVELOPE_MISSING": 1}),
    ]
    assert (summary["chain"]["payloads"], summary["chain"]["quarantined"]) == (5, 1)
    said = [node["established"] for node in summary["nodes"]]
    assert said == [{"one endpoint": 3, "receipts": 3}, None]
