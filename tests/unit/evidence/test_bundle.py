"""A bundle that an auditor wrote, checked from one block hash: what it proves, and what not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.council.evidence import BundleVerdict, Verdict, verify_bundle
from chainkit.errors import ConfigurationError
from chainkit.evidence.folder import read_bundle
from chainkit.protocol.reports import parse_inconsistency_report
from chainkit.signatures import keccak256
from chainkit_jobs.evidence.bundle import Reporter
from support.audit.audit_exports import GROUP, GROUP_MESSAGES, Post, base_posts, key_of
from support.audit.bundles import (
    ACCUSED,
    OTHER,
    OTHER_PAYLOAD,
    REPORTED_AT,
    REPORTER,
    BundleScene,
    bundle_scene,
)
from support.chains.proved_chain import Emitted, Sent, every_kind
from support.payloads import commit


@pytest.fixture
def scene(tmp_path: Path) -> BundleScene:
    return bundle_scene(tmp_path)


def verified(scene: BundleScene, bundle: Path | None = None) -> BundleVerdict:
    directory = bundle or scene.bundle
    return verify_bundle(directory, read_bundle(directory), scene.trusted_hash, scene.record)


def verdicts(result: BundleVerdict) -> list[tuple[str, Verdict]]:
    return [(finding.claimed_code, finding.verdict) for finding in result.findings]


def steps_of(result: BundleVerdict, code: str) -> Mapping[str, str]:
    [found] = [finding for finding in result.findings if finding.claimed_code == code]
    return {step.name: step.found for step in found.steps}


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_verify_bundle__usual_findings__judges_each_by_what_it_proves(scene: BundleScene) -> None:
    [written] = scene.write()

    result = verified(scene)

    assert verdicts(result) == [
        ("ENVELOPE_ALTERED", Verdict.PROVED),
        ("ENVELOPE_ALTERED", Verdict.NOT_PROVED),
        ("ENVELOPE_INVENTED", Verdict.NOT_PROVED),
        ("ENVELOPE_MISSING", Verdict.NOT_PROVED),
        ("QUARANTINED_SERVED", Verdict.REFUTED),
    ]
    assert [(each.codes, each.sequence_id) for each in result.findings] == [
        (("ENVELOPE_ALTERED",), 3),
        (("ENVELOPE_ALTERED",), 5),
        # That no contract gave out 99 is not in the bundle, and neither is what was not served.
        ((), 99),
        ((), 5),
        (("QUARANTINED_SERVED",), 4),
    ]
    assert result.verdict == Verdict.PROVED
    assert [each.proves_itself for each in written.findings] == [True, *[False] * 4]
    assert "absence is not proof" in result.findings[2].reason
    assert steps_of(result, "ENVELOPE_MISSING")["chain's log"].startswith(
        "proved: sequence id 5 in"
    )
    assert steps_of(result, "ENVELOPE_INVENTED")["chain's log"] == "none is named"


def test_verify_bundle__accused__is_as_the_registrys_last_log_says(scene: BundleScene) -> None:
    scene.write()

    result = verified(scene)

    assert result.accused is not None
    assert result.accused.signing_key == key_of(ACCUSED).public_key
    assert not result.accused.is_enabled
    assert read_bundle(scene.bundle).first_block == 3


def test_write_bundle__same_inputs__gives_the_same_bytes(scene: BundleScene) -> None:
    scene.write()
    scene.write(out="again")

    first = contents(scene.root / "bundles")
    assert first == contents(scene.root / "again")
    assert len(first) == 6


def test_write_bundle__export_in_ranges__differs_only_in_what_names_the_export(
    tmp_path: Path,
) -> None:
    whole, ranged = bundle_scene(tmp_path / "a"), bundle_scene(tmp_path / "b", blocks_per_file=3)
    whole.write()
    ranged.write()

    first, second = contents(whole.bundle), contents(ranged.bundle)
    assert {name for name in first if first[name] != second[name]} == {"bundle.json"}
    assert verified(ranged).verdict == Verdict.PROVED


def test_write_bundle__with_a_key__signs_a_report_of_what_was_served(scene: BundleScene) -> None:
    scene.write()

    [path] = [each for each in scene.bundle.glob("reports/*.pb") if ".unsigned." not in each.name]
    report = parse_inconsistency_report(path.read_bytes())

    assert report.reporter_public_key == REPORTER.public_key
    assert (report.reporter_time_ns, report.misbehaving_node_id) == (REPORTED_AT, ACCUSED)
    served = replace(scene.post(3), payload=OTHER_PAYLOAD).envelope(key_of(ACCUSED))
    assert report.envelopes == (served,)


def test_write_bundle__without_a_key__reports_are_unsigned(scene: BundleScene) -> None:
    scene.write(reporter=Reporter())

    assert [path.name[64:] for path in scene.bundle.glob("reports/*")] == [".unsigned.pb"]
    assert {step.name: step.found for step in verified(scene).steps}["reporter"] == "nobody signed"


def test_write_bundle__two_accused__are_two_bundles_with_their_own_findings(
    scene: BundleScene,
) -> None:
    altered = replace(scene.post(3), payload=OTHER_PAYLOAD)
    other = scene.finding("ENVELOPE_ALTERED", 3, altered.envelope(key_of(OTHER)))
    scene.write([scene.altered(3), other | {"node_id": OTHER}])

    for node_id in (OTHER, ACCUSED):
        result = verified(scene, scene.root / "bundles" / f"node-{node_id}")
        assert verdicts(result) == [("ENVELOPE_ALTERED", Verdict.PROVED)]
        assert result.accused is not None and result.accused.node_id == node_id


def test_verify_bundle__another_node_signed__is_not_proved_against_the_accused(
    scene: BundleScene,
) -> None:
    stranger = replace(scene.post(3), payload=OTHER_PAYLOAD).envelope(key_of(OTHER))
    scene.write([scene.finding("ENVELOPE_ALTERED", 3, stranger)])

    result = verified(scene)

    assert result.verdict == Verdict.NOT_PROVED
    assert "did not sign it" in result.findings[0].reason
    assert list(scene.bundle.glob("reports/*")) == []


def test_verify_bundle__impossible_form__is_proved_without_any_transaction(
    scene: BundleScene,
) -> None:
    impossible = replace(scene.post(3), sequence_id=0, transaction=keccak256(b"nowhere"))
    scene.write([scene.finding("ENVELOPE_INVENTED", 0, impossible.envelope(key_of(ACCUSED)))])

    assert verified(scene).verdict == Verdict.PROVED


def test_verify_bundle__all_served_is_the_chains__is_refuted(scene: BundleScene) -> None:
    scene.write([scene.finding("ENVELOPE_ALTERED", 3, scene.post(3).envelope(key_of(ACCUSED)))])

    assert verified(scene).verdict == Verdict.REFUTED


def test_verify_bundle__no_envelope_at_all__is_not_proved(scene: BundleScene) -> None:
    scene.write([scene.finding("ENVELOPE_UNREADABLE", 3, b"\xff\xff\x1b[2J")])

    result = verified(scene)

    assert result.verdict == Verdict.NOT_PROVED
    assert "\x1b" not in result.findings[0].reason


def test_verify_bundle__transaction_names_another_one__both_are_proved_to_be_there(
    scene: BundleScene,
) -> None:
    swapped = replace(scene.post(3), transaction=scene.post(7).transaction).envelope(
        key_of(ACCUSED)
    )
    scene.write([scene.finding("ENVELOPE_ALTERED", 3, swapped)])

    result = verified(scene)

    assert result.verdict == Verdict.PROVED
    steps = steps_of(result, "ENVELOPE_ALTERED")
    assert scene.post(3).transaction.hex() in steps["chain's log"]
    assert scene.post(7).transaction.hex() in steps["transaction"]


def test_verify_bundle__blocks_with_every_type_and_many_transactions__are_proved(
    tmp_path: Path,
) -> None:
    others = [*every_kind(block=11), *(Sent(12, input=b"%d" % n) for n in range(150))]
    scene = bundle_scene(tmp_path, more=[*others, Sent(14, logs=(Emitted(),) * 3)])
    scene.write()

    assert verified(scene).verdict == Verdict.PROVED


def test_verify_bundle__call_that_reverted__proves_another_payload(tmp_path: Path) -> None:
    scene = bundle_scene(tmp_path)
    posted = scene.chain.block(12)["transactions"][0]
    scene = bundle_scene(tmp_path / "b", more=[Sent(19, input=posted["input"], status=0)])
    [reverted] = scene.chain.block(19)["transactions"]
    served = replace(scene.post(3), payload=OTHER_PAYLOAD, transaction=reverted["transaction_hash"])
    scene.write([scene.finding("ENVELOPE_ALTERED", 3, served.envelope(key_of(ACCUSED)))])

    result = verified(scene)

    assert result.verdict == Verdict.PROVED
    assert "reverted" in steps_of(result, "ENVELOPE_ALTERED")["transaction"]


def test_verify_bundle__payload_through_a_wallet__proves_nothing(tmp_path: Path) -> None:
    wallet = b"\xfa" * 20
    scene = bundle_scene(tmp_path)
    log = scene.chain.block(12)["logs"][0]
    call = Sent(
        19,
        to=wallet,
        input=scene.chain.block(12)["transactions"][0]["input"],
        logs=(Emitted(GROUP_MESSAGES, tuple(log["topics"]), log["data"]),),
    )
    scene = bundle_scene(tmp_path / "b", more=[call])
    [sent] = scene.chain.block(19)["transactions"]
    served = replace(scene.post(3), payload=OTHER_PAYLOAD, transaction=sent["transaction_hash"])
    scene.write([scene.finding("ENVELOPE_ALTERED", 3, served.envelope(key_of(ACCUSED)))])

    result = verified(scene)

    assert result.verdict == Verdict.NOT_PROVED
    assert "no direct call" in result.findings[0].reason
    # A person who may name the contracts could call the wallet one of them.
    record = json.loads(scene.record_path.read_text())
    record["contracts"]["IdentityUpdates"]["address"] = "0x" + wallet.hex()
    scene.record_path.write_text(json.dumps(record))
    with pytest.raises(ConfigurationError, match="IdentityUpdates of the record"):
        verified(scene)


@pytest.mark.parametrize("hash_", [bytes(32), keccak256(b"another chain")])
def test_verify_bundle__another_hash_is_trusted__could_not_be_checked(
    scene: BundleScene, hash_: bytes
) -> None:
    scene.write()

    with pytest.raises(
        ConfigurationError, match="the hash of block 20, in which the bundle says"
    ) as refused:
        verify_bundle(scene.bundle, read_bundle(scene.bundle), hash_, scene.record)

    # A hash that the bundle gives would be pasted back.
    assert scene.trusted_hash.hex() not in str(refused.value)
    assert "from a node or explorers of your choice" in str(refused.value)


def test_write_bundle__block_that_the_export_cannot_prove__is_left_out_and_said(
    tmp_path: Path,
) -> None:
    scene = bundle_scene(tmp_path)
    place = next(row for row in scene.chain.rows["transactions"] if row["block_number"] == 12)
    place["v"] = None
    scene.chain.write(tmp_path / "untold")
    (tmp_path / "chain").rename(tmp_path / "told")
    (tmp_path / "untold").rename(tmp_path / "chain")
    [written] = scene.write()

    result = verified(scene)

    assert [sentence[:27] for sentence in written.bundle.left_out] == [
        "block 12 cannot be proved: "
    ]
    assert any(step.name == "left out" for step in result.steps)
    assert result.verdict == Verdict.NOT_PROVED
    assert result.findings[0].steps[0].found.startswith("not proved: the bundle lacks")


def test_verify_bundle__two_payloads_in_one_transaction__each_is_compared(tmp_path: Path) -> None:
    posts = base_posts()
    twin = Post(9, 17, commit(GROUP, seed=90), transaction=keccak256(b"both"))
    posts[7] = replace(posts[7], transaction=twin.transaction)
    scene = bundle_scene(tmp_path, posts=[*posts, twin])
    envelope = scene.post(9).envelope(key_of(ACCUSED))
    scene.write([scene.finding("ENVELOPE_ALTERED", 9, envelope)])

    assert verified(scene).verdict == Verdict.REFUTED
