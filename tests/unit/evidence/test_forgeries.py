"""Bundles made to accuse the innocent: refused, or proving nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.council.evidence import verify_bundle
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.evidence.folder import read_bundle
from chainkit.protocol.reports import sign_report
from chainkit_jobs.evidence.bundle import Reporter
from support.audit.audit_exports import GENESIS, NODE_REGISTRY, key_of, registered
from support.audit.bundles import (
    ACCUSED,
    OTHER,
    OTHER_PAYLOAD,
    BundleScene,
    bundle_scene,
    proved,
    refused,
    relabel,
    reseal,
    rewrite_line,
)
from support.chains.proved_chain import Emitted, Sent

pytest_plugins = ["support.audit.bundle_fixtures"]


def test_verify_bundle__named_for_another_node__proves_nothing(scene: BundleScene) -> None:
    for number in range(5):
        relabel(scene.bundle, number, node_id=OTHER)
    reseal(scene.bundle, node_id=OTHER, proving_themselves=1)

    refused(scene, "a report of what was served")
    shutil.rmtree(scene.bundle / "reports")
    (scene.bundle / "reports").mkdir()
    rewrite_line(scene.bundle / "findings.jsonl", 0, unsigned_report_sha256=None)
    reseal(scene.bundle, proving_themselves=0)
    # The registry's transactions speak of the other node, so that no key is the accused one's.
    assert proved(scene) == set()


def test_verify_bundle__registration_left_out__proves_nothing(scene: BundleScene) -> None:
    reseal(scene.bundle, registry_transactions=[])

    assert proved(scene) == set()


def test_verify_bundle__registrations_in_another_order__are_refused(scene: BundleScene) -> None:
    content = json.loads((scene.bundle / "bundle.json").read_text())

    reseal(scene.bundle, registry_transactions=content["registry_transactions"][::-1])

    refused(scene, "the chain's order")


def test_verify_bundle__transaction_left_out__is_absence_and_no_proof(scene: BundleScene) -> None:
    path = scene.bundle / "transactions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    transaction = scene.post(3).transaction.hex().encode()
    path.write_bytes(b"".join(line for line in lines if transaction not in line))
    reseal(scene.bundle)

    assert proved(scene) == set()


@pytest.mark.parametrize(
    "changes",
    [
        {"transaction_index": 1},
        {"block_number": 13},
        {"receipt_proof": []},
        {"transaction_proof": []},
        {"transaction_proof": ["0xc0"] * 64},
        {"receipt_proof": ["0x" + "c1" * 5000 + "c0"]},
    ],
)
def test_verify_bundle__transaction_placed_elsewhere__is_refused(
    scene: BundleScene, changes: dict[str, Any]
) -> None:
    path = scene.bundle / "transactions.jsonl"
    lines = path.read_bytes().splitlines()
    number = next(n for n, line in enumerate(lines) if json.loads(line)["block_number"] == 12)
    rewrite_line(path, number, **changes)
    reseal(scene.bundle)

    refused(scene, "transaction|header")


def test_verify_bundle__transaction_said_to_have_another_hash__is_refused(
    tmp_path: Path,
) -> None:
    scene = bundle_scene(tmp_path)
    unknown = replace(scene.post(3), transaction=b"\x0b" * 32).envelope(key_of(ACCUSED))
    scene.write([scene.altered(7), scene.finding("ENVELOPE_INVENTED", 3, unknown)], Reporter())
    path = scene.bundle / "transactions.jsonl"
    posted = scene.post(7).transaction.hex()
    for number, line in enumerate(path.read_text().splitlines()):
        if posted in line:
            # The envelope would then be compared with a payload that its transaction never posted.
            rewrite_line(path, number, transaction_hash="0x" + "0b" * 32)
    reseal(scene.bundle)

    refused(scene, "expected hash 0x0b0b")


def test_verify_bundle__registered_by_another_contract__proves_nothing(tmp_path: Path) -> None:
    # Anybody can deploy a contract that emits NodeUpdated for any node and key.
    stranger = key_of(9)
    log = registered(ACCUSED, key=stranger)
    fake = Sent(19, b"\xfe" * 20, logs=(Emitted(b"\xfe" * 20, tuple(log["topics"]), log["data"]),))
    scene = bundle_scene(tmp_path, more=[fake])
    [sent] = scene.chain.block(19)["transactions"]
    forged = replace(scene.post(3), payload=OTHER_PAYLOAD)
    carrier = replace(scene.post(3), transaction=sent["transaction_hash"])
    scene.write(
        [
            scene.finding("ENVELOPE_ALTERED", 3, forged.envelope(stranger)),
            scene.finding("ENVELOPE_ALTERED", 3, carrier.envelope(stranger)),
        ],
        Reporter(),
    )
    reseal(scene.bundle, registry_transactions=["0x" + sent["transaction_hash"].hex()])

    assert proved(scene) == set()


def test_write_bundle__registry_tells_two_keys__is_refused(tmp_path: Path) -> None:
    log = registered(ACCUSED, key=key_of(9))
    second = Sent(
        19, NODE_REGISTRY, logs=(Emitted(NODE_REGISTRY, tuple(log["topics"]), log["data"]),)
    )
    scene = bundle_scene(tmp_path, more=[second])

    with pytest.raises(MalformedData, match="one key, which never changes"):
        scene.write()


def test_verify_bundle__heights_all_said_to_be_higher__are_refused(scene: BundleScene) -> None:
    path = scene.bundle / "transactions.jsonl"
    for number, line in enumerate(path.read_text().splitlines()):
        rewrite_line(path, number, block_number=json.loads(line)["block_number"] + 1)
    trusted = {"number": 21, "hash": "0x" + scene.trusted_hash.hex()}
    reseal(scene.bundle, first_block=4, trusted_block=trusted)

    refused(scene, "a header of this height")


def test_verify_bundle__transactions_in_another_order__are_refused(scene: BundleScene) -> None:
    path = scene.bundle / "transactions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[::-1]))
    reseal(scene.bundle)

    refused(scene, "a place after transaction")


def test_verify_bundle__transaction_at_two_places__is_refused(scene: BundleScene) -> None:
    path = scene.bundle / "transactions.jsonl"
    line = path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(path.read_bytes() + line)
    rewrite_line(path, -1, transaction_index=5)
    reseal(scene.bundle)

    refused(scene, "one place")


def test_verify_bundle__report_signed_by_another_than_it_says__is_refused(tmp_path: Path) -> None:
    scene = bundle_scene(tmp_path)
    scene.write([scene.altered(3)])
    [unsigned] = scene.bundle.glob("reports/*.unsigned.pb")
    signed = sign_report(unsigned.read_bytes(), key_of(9))
    Path(str(unsigned).replace(".unsigned", "")).write_bytes(signed)
    report_sha256 = hashlib.sha256(signed).hexdigest()
    rewrite_line(scene.bundle / "findings.jsonl", 0, report_sha256=report_sha256)
    reseal(scene.bundle)

    refused(scene, "a report signed by the bundle's reporter")


@pytest.mark.parametrize(
    "changes", [{"expected_digest": "0x" + "00" * 32}, {"expected_digest": None}]
)
def test_verify_bundle__log_with_another_digest_than_named__is_not_called_proved(
    scene: BundleScene, changes: dict[str, Any]
) -> None:
    relabel(scene.bundle, 0, **changes)

    result = verify_bundle(
        scene.bundle, read_bundle(scene.bundle), scene.trusted_hash, scene.record
    )

    assert result.findings[0].steps[0].found.startswith("not proved: transaction 0x")
    assert result.findings[0].codes == ()
    assert result.findings[1].steps[0].found.startswith("proved: sequence id 5")


def test_verify_bundle__receipt_of_another_transaction__is_refused(scene: BundleScene) -> None:
    path = scene.bundle / "transactions.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    rewrite_line(path, 2, receipt_proof=lines[3]["receipt_proof"])
    reseal(scene.bundle)

    refused(scene, "of block")


@pytest.mark.parametrize(
    "spoil", [lambda data: data[100:], lambda data: b"", lambda data: data * 2]
)
def test_verify_bundle__headers_that_lead_nowhere__are_refused(
    scene: BundleScene, spoil: Callable[[bytes], bytes]
) -> None:
    path = scene.bundle / "headers.rlp"
    path.write_bytes(spoil(path.read_bytes()))
    reseal(scene.bundle)

    refused(scene, "header|parent")


@pytest.mark.parametrize("first_block", [0, 2, 4, 19])
def test_verify_bundle__headers_said_to_begin_elsewhere__are_refused(
    scene: BundleScene, first_block: int
) -> None:
    reseal(scene.bundle, first_block=first_block)

    refused(scene, "header")


def test_verify_bundle__another_genesis_or_chain__is_refused(scene: BundleScene) -> None:
    reseal(scene.bundle, genesis_hash="0x" + GENESIS[::-1].hex())

    with pytest.raises(ConfigurationError, match="genesis hash of the record"):
        proved(scene)


def test_verify_bundle__report_of_something_else__is_refused(scene: BundleScene) -> None:
    served = replace(scene.post(3), payload=OTHER_PAYLOAD + b"\x0a\x00").envelope(key_of(ACCUSED))
    relabel(scene.bundle, 0, envelope="0x" + served.hex())

    refused(scene, "a report of what was served")


@pytest.mark.parametrize("name", ["another.pb", "../../x", "\x1b[2J"])
def test_verify_bundle__report_that_no_finding_names__is_refused(
    scene: BundleScene, name: str
) -> None:
    (scene.bundle / "reports" / name.replace("/", "_")).write_bytes(b"")

    refused(scene, "the findings' reports alone")
