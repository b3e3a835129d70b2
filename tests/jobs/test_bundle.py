"""The whole way on a real chain: exported, proved, audited, bundled, and checked by the council."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain import parse_log
from chainkit.protocol.envelope import sign_originator_envelope, unsigned_originator_envelope
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.reports import parse_inconsistency_report
from chainkit.signatures import SigningKey, address_of, keccak256
from support.audit.audit_exports import write_node
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.command_line import Outcome, run, write_keystore
from support.payloads import commit, identity_update

HONEST, CHEAT = 100, 200
KEYS = {HONEST: SigningKey(bytes(31) + b"\x61"), CHEAT: SigningKey(bytes(31) + b"\x62")}
AUDITOR = keccak256(b"auditor")
GROUP, INBOX = b"\x01" * 32, b"\x02" * 32


def served(
    chain: LocalChain, transaction: bytes, key: SigningKey, changes: Mapping[str, Any] | None = None
) -> bytes:
    """A node's envelope for a transaction, with other arguments of the event if it cheats."""
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None
    event = decode_payload_event(parse_log(receipt["logs"][0]))
    header = chain.endpoint.header(int(receipt["blockNumber"], 16))
    unsigned = unsigned_originator_envelope(event._replace(**changes or {}), header.timestamp)
    return sign_originator_envelope(unsigned, transaction, key)


def publish(chain: LocalChain) -> list[bytes]:
    """Register the nodes, post six payloads, and disable the second node."""
    for node_id, key in KEYS.items():
        chain.add_node(dev_address(5), key.public_key, f"https://node{node_id}.example")
    sent = [chain.publish_message(GROUP, commit(GROUP, seed=n)) for n in range(5)]
    sent.append(chain.publish_identity_update(INBOX, identity_update(INBOX)))
    call = keccak256(b"updateHealth(uint256,bool)")[:4] + bytes(30) + b"\x00\xc8" + bytes(32)
    chain.send(chain.record.node_registry.address, call, sender=REGISTRY_OWNER)
    return sent


def audited(chain: LocalChain, sent: list[bytes], root: Path) -> tuple[Outcome, str]:
    """Export the chain and both nodes, and reconcile them; return also the hash of its head."""
    head = chain.head().reference
    trusted = "0x" + head.hash.hex()
    options = ("--rpc", chain.url, "--deployment", chain.record_path)
    exported = run("audit", "export-chain", *options, "--out", root / "chain")
    assert exported.code == 0, exported.err
    manifest = json.loads((root / "chain" / "manifest.json").read_text())
    about = {name: manifest[name] for name in ("chain_id", "genesis_hash", "contracts")}
    about |= {"from_block": manifest["from_block"]}
    about |= {"to_block": head.number, "to_block_hash": trusted}
    honest = [served(chain, each, KEYS[HONEST]) for each in sent]
    cheat = [served(chain, each, KEYS[CHEAT]) for each in sent]
    cheat[1] = served(chain, sent[1], KEYS[CHEAT], {"payload": commit(GROUP, seed=99)})
    cheat[3] = served(chain, sent[3], KEYS[CHEAT], {"sequence_id": 40})
    write_node(root / "honest", honest, KEYS[HONEST], **about)
    write_node(root / "cheat", cheat, KEYS[CHEAT], **about)
    nodes = ("--node", root / "honest", "--node", root / "cheat")
    outcome = run(
        *("audit", "reconcile", "--chain", root / "chain", *nodes, "--trust", trusted),
        *("--out", root / "audit", "--json", "--without-costs"),
    )
    return outcome, trusted


@pytest.mark.usefixtures("spark")
def test_bundle__cheat_on_a_real_chain__is_proved_offline_and_by_an_endpoint(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    sent = publish(local_chain)
    audit, trusted = audited(local_chain, sent, tmp_path)
    assert audit.code == 1, audit.err

    bundled = run(
        *("audit", "bundle", tmp_path / "audit", "--chain", tmp_path / "chain", "--json"),
        *("--out", tmp_path / "bundles", "--reported-at", "2026-11-22T10:00:00Z"),
        *write_keystore(tmp_path, AUDITOR),
    )
    assert bundled.code == 0, bundled.err
    [written] = bundled.content
    bundle = tmp_path / "bundles" / f"node-{CHEAT}"
    assert (written["node_id"], written["directory"]) == (CHEAT, str(bundle))
    found = {(each["code"], each["proves_itself"]) for each in written["findings"]}
    assert found >= {
        ("ENVELOPE_ALTERED", True),
        ("ENVELOPE_INVENTED", False),
        ("ENVELOPE_MISSING", False),
    }
    assert written["left_out"] == []

    deployment = ("--deployment", local_chain.record_path, "--json")
    offline = run("council", "verify", bundle, "--trust", trusted, *deployment)
    local_chain.mine(3)
    online = run("council", "verify", bundle, "--rpc", local_chain.url, *deployment)
    assert (offline.code, online.code) == (0, 0), offline.err + online.err
    verdicts = [
        {each["finding_id"]: each["verdict"] for each in outcome.content["findings"]}
        for outcome in (offline, online)
    ]
    assert verdicts[0] == verdicts[1]
    assert set(verdicts[0].values()) == {"proved", "not proved"}
    steps = {step["name"]: step["found"] for step in offline.content["steps"]}
    key = address_of(KEYS[CHEAT].public_key)
    assert steps["accused"] == f"node {CHEAT}, disabled, key of {key}"

    [report] = [each for each in bundle.glob("reports/*.pb") if ".unsigned." not in each.name]
    assert parse_inconsistency_report(report.read_bytes()).misbehaving_node_id == CHEAT
    alone = run("council", "verify", report, "--rpc", local_chain.url, *deployment)
    assert alone.code == 0, alone.err

    local_chain.reorg(5)
    forked = run("council", "verify", bundle, "--rpc", local_chain.url, *deployment)
    assert forked.code == 2
    assert "the chain of the bundle's last block" in forked.err
