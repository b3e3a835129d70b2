"""A node is asked over its public API, and audited by what it answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainkit.protocol.envelope import parse_originator_envelope
from localnet.commands import Settings
from localnet.network import Network
from support import mls, publishes
from support.command_line import Outcome, run
from support.network.api import Api
from support.network.grpc_proxy import lying_node

GROUP = b"\x5e" * 16


def publish(network: Network, *epochs: int) -> list[int]:
    """Have the gateway publish commits; return the sequence ids that the chain gave them."""
    gateway = Api(network.gateway_url)
    try:
        payloads = [
            publishes.group_message(mls.private_message(GROUP, mls.COMMIT, epoch), GROUP)
            for epoch in epochs
        ]
        answers = [gateway.publish_for_clients(each)[0] for each in payloads]
    finally:
        gateway.close()
    return [parse_originator_envelope(each).sequence_id for each in answers]


class Auditor:
    def __init__(self, settings: Settings, folder: Path) -> None:
        self.where = ("--rpc", settings.rpc_url, "--deployment", str(settings.record_path))
        self.folder = folder

    def ask(self, url: str, name: str, *options: str) -> Any:
        out = ("--out", str(self.folder / name), "--json")
        outcome = run("audit", "export-node", url, *self.where, *out, *options)
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.content

    def export_chain(self) -> None:
        out = str(self.folder / "chain")
        assert run("audit", "export-chain", *self.where, "--out", out).code == 0

    def reconcile(self, out: str, *nodes: str) -> Outcome:
        named = [part for node in nodes for part in ("--node", str(self.folder / node))]
        chain = ("--chain", str(self.folder / "chain"), "--out", str(self.folder / out))
        return run("audit", "reconcile", *chain, *named, "--without-costs", "--master", "local[2]")

    def findings(self, out: str) -> list[tuple[str, int]]:
        lines = (self.folder / out / "findings.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        return [(row["code"], int(row["sequence_id"])) for row in rows]


def test_export_node__honest_and_lying_answers__the_audit_tells_them_apart(
    network: Network, settings: Settings, tmp_path: Path
) -> None:
    auditor = Auditor(settings, tmp_path)
    first = publish(network, 1, 2)
    asked = auditor.ask(network.node_url, "honest", "--page-rows", "1")
    assert asked["answered_to"] == first[-1]
    later = publish(network, 3, 4, 5)

    # It goes on behind what it has.
    asked = auditor.ask(network.node_url, "honest")
    assert (asked["new_envelopes"], asked["answered_to"]) == (3, later[-1])
    again = auditor.ask(network.node_url, "again")
    assert again["envelopes"] == asked["envelopes"]
    with lying_node(network.node_url, left_out={later[0]}) as url:
        assert auditor.ask(url, "lying")["envelopes"] == again["envelopes"] - 1
    auditor.export_chain()

    honest = auditor.reconcile("audit-honest", "honest", "again")
    assert honest.code == 0, honest
    assert honest.out.startswith("no difference found")

    lying = auditor.reconcile("audit-lying", "lying", "again")
    assert lying.code == 1, lying
    assert auditor.findings("audit-lying") == [
        ("ANSWERS_DIFFER", later[0]),
        ("ENVELOPE_MISSING", later[0]),
    ]


def test_export_node__nobody_at_the_address__says_so(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.node_export.api.ATTEMPTS", 1)
    out = tmp_path / "node"
    where = ("--rpc", settings.rpc_url, "--deployment", str(settings.record_path))

    outcome = run("audit", "export-node", "http://127.0.0.1:1", *where, "--out", str(out))

    assert outcome.code not in (0, 1)
    assert "expected a page of envelopes, got UNAVAILABLE" in " ".join(outcome.err.split())
    assert not out.exists()
