"""The story in its stages: from deployment to a node that is disabled on evidence."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from chainkit.chain import Endpoint
from chainkit.errors import ChainkitError
from chainkit.exports import files_of, load_manifest
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.terminal.keystore import load_signing_key
from chainkit.text.counting import counted
from demo.cheat import Injected, tamper
from demo.council import Council, desired_nodes
from demo.devices import TEXT, Devices
from demo.live import LiveNetwork
from demo.operators import Operator
from demo.progress import say, stage
from demo.summary import Summary, count_codes
from localnet.anvil import Anvil
from localnet.commands import Settings, run, run_json
from localnet.deployment import deploy, run_ape_script
from localnet.private_file import write_private

MESSAGES_BEFORE: Final = 240
MESSAGES_AFTER: Final = 60
MALFORMED_BEFORE: Final = 12
MALFORMED_AFTER: Final = 6
REORG_DEPTH: Final = 5
REORG_DROPS: Final = 4
PER_BLOCK: Final = 12
PASSWORD: Final = "demo"
"""Protects keys of a chain that ends with the demo."""


class StageFailed(ChainkitError):
    """The story cannot go on."""


def tell(folder: Path, summary: Summary) -> None:
    """Play all stages; ``summary`` gets the events, and everything is stopped again."""
    with ExitStack() as stack:
        Story(folder, summary, stack).play()


class Story:
    """The actors, and the stages in which they act."""

    def __init__(self, folder: Path, summary: Summary, stack: ExitStack) -> None:
        """Start the private chain."""
        self._folder = folder
        self._summary = summary
        self._facts = summary.facts
        self._stack = stack
        self._anvil = stack.enter_context(Anvil())
        password_path = folder / "password"
        write_private(password_path, PASSWORD)
        self._settings = Settings(self._anvil.url, folder / "deployment.json", password_path)
        self._operators = [
            Operator(name, folder / name, self._settings) for name in ("alice", "bob", "mallory")
        ]
        self._council = Council(self._settings, folder / "council", PASSWORD)
        self._injected: list[Injected] = []
        self._traffic: list[dict[str, int]] = []
        self._live = LiveNetwork(self._settings, folder, stack, self._operators)
        self._by_clients = 0
        self._said: list[str] = []

    @property
    def _evidence(self) -> Path:
        return self._folder / "evidence"

    @property
    def _honest(self) -> list[Operator]:
        return self._operators[:2]

    @property
    def _faulty(self) -> Operator:
        return self._operators[2]

    def play(self) -> None:
        """All stages in order."""
        stages = (
            ("deploy", "deploy the contracts, and hand them to a Safe", self._deploy),
            ("register", "register three nodes by one proposal", self._register),
            ("publish", "publish while three nodes serve and replicate", self._publish),
            ("reorg", "force a reorg under the running nodes", self._reorg),
            ("settle", "publish on, and let the nodes catch up", self._settle),
            ("devices", "bring the past to a person's second device", self._devices),
            ("lie", "let one node lie to the others, live", self._lie),
            ("tamper", "tamper with what it serves of the chain", self._tamper),
            ("export", "export the nodes and the chain", self._export),
            ("reconcile", "reconcile the nodes with the chain (Spark)", self._reconcile),
            ("report", "sign a misbehavior report, and verify it", self._report),
            ("disable", "triage the evidence, and disable the faulty node", self._disable),
            ("see", "audit again: the registry's change is part of the chain", self._see),
        )
        for number, (name, title, play) in enumerate(stages, 1):
            with stage(f"[{number}/{len(stages)}] {title}", self._summary.seconds, name):
                play()

    # ------------------------------------------------------------------ the stages

    def _deploy(self) -> None:
        deploy(self._anvil.url, self._settings.record_path)
        record = json.loads(self._settings.record_path.read_text())
        for name, contract in sorted(record["contracts"].items()):
            say(f"{name} at {contract['address']}")
        say(f"the council's Safe at {self._council.take_over(self._anvil)}")

    def _register(self) -> None:
        keys = [operator.make_key() for operator in self._operators]
        self._live.start_nodes()
        nodes = [
            key | {"http_address": operator.url}
            for key, operator in zip(keys, self._operators, strict=True)
        ]
        desired = self._folder / "nodes.yaml"
        desired.write_text(desired_nodes(nodes))
        command = ("registry", "plan", desired, "--no-check-url")
        self._council.decide("register", "three operators join", *command)
        for operator, node in zip(self._operators, self._registered(), strict=True):
            operator.node_id = node["node_id"]
            say(f"{operator.name} is node {operator.node_id}")

    def _publish(self) -> None:
        self._live.start_gateway(PASSWORD)
        self._talk("hello before the reorg")
        self._wait_for_indexers()
        # Identity updates and commits of the clients; their other payloads are not on the chain.
        self._by_clients = self._operators[0].status()["envelopes"]
        self._run_traffic(MESSAGES_BEFORE, MALFORMED_BEFORE, seed=1)

    def _talk(self, text: str) -> None:
        """Let one real client write to another, who must read the message after all others."""
        self._said.append(text)
        read = self._live.talk(text)
        self._facts["real_client_messages"] = len(read)
        self._summary.expect("texts that the second client read", self._said, read)
        say(f"two clients of today: the second one reads {counted(len(read), 'text')}")

    def _reorg(self) -> None:
        self._wait_for_indexers()
        arguments = ("--depth", str(REORG_DEPTH), "--drop", str(REORG_DROPS), "--json")
        done = json.loads(run_ape_script("reorg", self._anvil.url, *arguments))
        self._wait_for_indexers()
        status = self._operators[0].status()
        self._summary.expect("number of reorgs seen", 1, len(status["reorgs"]))
        seen = status["reorgs"][-1]
        self._facts["reorg"] = {
            outcome: seen[outcome] for outcome in ("depth", "kept", "moved", "dropped")
        }
        self._summary.expect("reorg depth", done["depth"], seen["depth"])
        self._summary.expect("payloads dropped", len(done["dropped"]), seen["dropped"])
        self._summary.expect(
            "payloads mined again", len(done["remined"]), seen["kept"] + seen["moved"]
        )
        say(
            f"{seen['depth']} blocks replaced: {seen['kept']} payloads kept, "
            f"{seen['moved']} moved, {seen['dropped']} dropped"
        )

    def _settle(self) -> None:
        self._talk("hello after the reorg")
        self._run_traffic(MESSAGES_AFTER, MALFORMED_AFTER, seed=2)
        self._wait_for_indexers()
        self._count()

    def _devices(self) -> None:
        devices = Devices(
            self._settings, self._folder / "devices", self._live.gateway_url, self._live.storage_url
        )
        group = devices.talk()
        past = devices.bring_past(group)
        self._facts["second_device"] = {"texts": len(past.texts), "proven": past.proven}
        self._summary.expect("texts on the second device", [TEXT], past.texts)
        self._summary.expect("doubts about its past", 0, sum(past.doubts.values()))
        self._summary.expect("messages of its past that are proven", True, past.proven >= 1)
        doubts = ", ".join(f"{count} {name}" for name, count in past.doubts.items())
        say(f"{counted(len(past.texts), 'text')} from before the phone joined")
        say(f"of the messages that came, the network proves {past.proven}; {doubts}")

    def _lie(self) -> None:
        self._live.lie(self._faulty)
        caught = self._live.wait_until_caught(self._faulty)
        told = count_codes(each.misbehavior for each in self._live.told)
        self._facts["live_lies_told"], self._facts["live_lies_reported"] = told, caught
        self._summary.expect("live lies that the honest nodes proved", told, caught)
        say(f"the other nodes prove, and report: {', '.join(caught)}")
        proved = self._live.check_as_client()
        self._facts["live_lies_proved_by_client"] = proved[self._faulty.node_id]
        none: dict[str, int] = {}
        expected = {
            each.node_id: told if each is self._faulty else none for each in self._operators
        }
        self._summary.expect("live lies that a client proved, by node", expected, proved)
        say(f"a client without a node proves: {', '.join(proved[self._faulty.node_id])}")

    def _stop(self, operator: Operator) -> None:
        assert operator.indexer is not None
        code = operator.indexer.stop()
        self._summary.expect(f"exit code of {operator.name}'s node", 0, code)

    def _tamper(self) -> None:
        gathered = self._live.gather(self._evidence)
        say(f"the council gathers {counted(len(gathered['reports']), 'report')} from all nodes")
        self._stop(self._faulty)
        key = load_signing_key(self._faulty.keystore, self._settings.password_path)
        self._injected = tamper(self._faulty.database, key)
        for injected in self._injected:
            say(f"{self._faulty.name}: sequence {injected.sequence_id}, {injected.code}")

    def _export(self) -> None:
        serving, second, faulty = self._operators
        # The auditor asks a serving node; the other operators hand in their exports.
        run(self._settings, "audit", "export-node", serving.url, "--out", serving.export)
        for operator in (second, faulty):
            operator.write_export()
        run(self._settings, "audit", "export-chain", "--out", self._folder / "chain")
        first, other = (_unsigned_envelopes(operator.export) for operator in self._honest)
        self._facts["honest_nodes_identical"] = bool(first) and first == other
        self._summary.expect("honest nodes identical", True, self._facts["honest_nodes_identical"])
        say(f"{serving.name} was asked over the public API, the others exported their databases")
        say(f"{len(first)} unsigned envelopes of the honest nodes compared")

    def _reconcile(self) -> None:
        out = self._folder / "audit"
        trusted, last = self._audit(out)
        found = self._findings()
        expected = {(item.code, self._faulty.node_id, item.sequence_id) for item in self._injected}
        got = {(row["code"], row["node_id"], int(row["sequence_id"])) for row in found}
        trust = json.loads((out / "summary.json").read_text())["trust"]
        self._summary.expect("block hash trusted", trusted, trust["block_hash"])
        proved = trust["proved"]
        say(f"{proved['blocks']} blocks and {proved['receipts']} receipts proved from block {last}")
        self._facts["findings"] = count_codes(row["code"] for row in found)
        self._facts["expected_findings"] = count_codes(item.code for item in self._injected)
        self._summary.expect("findings", sorted(expected), sorted(got))
        self._summary.expect("number of findings", len(self._injected), len(found))
        for row in found:
            say(f"{row['code']}: node {row['node_id']}, sequence {row['sequence_id']}")

    def _audit(self, out: Path, *options: str) -> tuple[str, int]:
        """Reconcile all nodes with the chain export; return the trusted block's hash and height."""
        exports = [part for operator in self._operators for part in ("--node", operator.export)]
        chain = self._folder / "chain"
        last = load_manifest(chain, "chain").to_block
        # Everybody here asks the same node; an auditor asks another source than the export's.
        block = Endpoint.connect(self._anvil.url).header(last)
        trusted = "0x" + block.hash.hex()
        arguments = ("--chain", chain, "--trust", trusted, *exports, "--out", out, *options)
        # 1 is the exit code of "there are findings", which there must be.
        run(self._settings, "audit", "reconcile", *arguments, expected=(0, 1))
        return trusted, last

    def _report(self) -> None:
        altered = next((r for r in self._findings() if r["code"] == "ENVELOPE_ALTERED"), None)
        if altered is None:
            raise StageFailed("findings", "an altered envelope to report", "none")
        report = self._evidence / "report.pb"
        run(
            self._settings,
            *("audit", "report-misbehavior", "--findings", self._folder / "audit"),
            *("--chain", self._folder / "chain"),
            *("--finding", altered["finding_id"], "--keystore", self._operators[0].keystore),
            *("--out", report),
        )
        verified = run_json(self._settings, "council", "verify", report, expected=(0, 1))
        self._facts["report_verified"] = verified["verdict"] == "proved"
        self._summary.expect("verdict on the report", "proved", verified["verdict"])
        say(f"the council's verdict: {verified['verdict']}")
        self._bundle()

    def _bundle(self) -> None:
        """Verify the bundle without an endpoint: the bundle contains all that its proof needs."""
        bundles, chain = self._evidence / "bundles", self._folder / "chain"
        source = (self._folder / "audit", "--chain", chain)
        run(self._settings, "audit", "bundle", *source, "--out", bundles)
        trusted = json.loads((self._folder / "audit" / "summary.json").read_text())["trust"]
        bundle = bundles / f"node-{self._faulty.node_id}"
        arguments = ("verify", bundle, "--trust", trusted["block_hash"])
        verified = run_json(self._settings, "council", *arguments, expected=(0, 1))
        self._facts["bundle_verified"] = verified["verdict"] == "proved"
        self._summary.expect("verdict on the bundle", "proved", verified["verdict"])
        say(f"and offline, from the block's hash: {verified['verdict']}")

    def _disable(self) -> None:
        triage = ("council", "triage", self._evidence)
        reason = f"node {self._faulty.node_id} served what the chain does not hold"
        hash_ = self._council.decide("disable", reason, *triage)
        trail = self._council.log()
        self._facts["proposals"] = len(trail)
        self._summary.expect("proposals in the audit trail", self._council.decided, len(trail))
        self._summary.expect("last proposal in the audit trail", hash_, trail[-1]["hash"])
        honest_ids = [operator.node_id for operator in self._honest]
        seen = [operator.enabled_nodes() for operator in self._honest]
        self._facts["node_disabled"] = all(ids == honest_ids for ids in seen)
        for operator, ids in zip(self._honest, seen, strict=True):
            self._summary.expect(f"enabled nodes that {operator.name} sees", honest_ids, ids)
            say(f"{operator.name} now follows nodes {', '.join(map(str, ids))}")
        self._live.wait_until_followed_elsewhere(self._faulty)
        for operator in self._honest:
            self._stop(operator)

    def _see(self) -> None:
        """Check that the next audit reads the disabled status from the chain."""
        run(self._settings, "audit", "export-chain", "--out", self._folder / "chain")
        out = self._folder / "audit-after"
        # The first audit measured what the traffic cost.
        self._audit(out, "--without-costs")
        nodes = json.loads((out / "summary.json").read_text())["nodes"]
        enabled = {node["node_id"]: node["is_enabled"] for node in nodes}
        expected = {operator.node_id: operator is not self._faulty for operator in self._operators}
        self._facts["audit_sees_disabled"] = enabled == expected
        self._summary.expect("enabled nodes that the audit sees", expected, enabled)
        say(f"node {self._faulty.node_id} is disabled at the block that the audit trusts")

    # ------------------------------------------------------------------ helpers

    def _registered(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = run_json(self._settings, "registry", "list")["nodes"]
        return nodes

    def _run_traffic(self, messages: int, malformed: int, seed: int) -> None:
        output = run_ape_script(
            "traffic",
            self._anvil.url,
            *("--record", str(self._settings.record_path), "--per-block", str(PER_BLOCK)),
            *("--messages", str(messages), "--malformed", str(malformed), "--seed", str(seed)),
            "--json",
        )
        traffic = json.loads(output)
        self._traffic.append(traffic)
        say(
            f"{traffic['group_messages']} commits, {traffic['identity_updates']} identity updates, "
            f"{traffic['malformed']} malformed, blocks {traffic['first_block']} to "
            f"{traffic['last_block']}"
        )

    def _wait_for_indexers(self) -> None:
        head = self._anvil.endpoint.head().reference
        for operator in self._operators:
            operator.wait_for(head)

    def _findings(self) -> list[dict[str, Any]]:
        lines = (self._folder / "audit" / "findings.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def _count(self) -> None:
        """Compare what the nodes hold with what was published, less what the reorg dropped."""
        statuses = [operator.status() for operator in self._operators]
        envelopes = [status["envelopes"] for status in statuses]
        quarantined = [sum(status["quarantined"].values()) for status in statuses]
        published = self._by_clients + sum(traffic["published"] for traffic in self._traffic)
        remaining = published - self._facts["reorg"]["dropped"]
        self._facts["messages_published"] = published
        self._facts["quarantined"] = quarantined[0]
        self._facts["envelopes_per_node"] = {
            str(operator.node_id): count
            for operator, count in zip(self._operators, envelopes, strict=True)
        }
        for operator, *counts in zip(self._operators, envelopes, quarantined, strict=True):
            self._summary.expect(f"payloads that {operator.name} holds", remaining, sum(counts))


def _unsigned_envelopes(export: Path) -> list[bytes]:
    return [
        parse_originator_envelope(envelope).unsigned_originator_envelope
        for name in files_of(load_manifest(export, "node"), "envelopes")
        for envelope in pq.read_table(export / name, columns=["envelope"])["envelope"].to_pylist()
    ]
