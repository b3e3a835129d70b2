"""Contradictions between the contracts' own events and the payloads among them are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from chainkit_jobs.reconcile.audit import Audit, run_audit
from support.audit.administration import COUNCIL, SECOND_CODE, STRANGER, History
from support.audit.audit_exports import (
    Post,
    base_posts,
    honest,
    key_of,
    registered,
    write_chain,
    write_node,
)
from support.audit.inputs import read_inputs

Act = Callable[[History], None]
A, B = 100, 200

# The payloads of base_posts stand in the blocks 10 to 17, of 9 to 900 bytes and more.
PAUSE_AROUND_12: Mapping[int, Act] = {
    11: lambda h: h.emit("GroupMessages", "Paused", COUNCIL),
    13: lambda h: h.emit("GroupMessages", "Unpaused", COUNCIL),
}


def audited(
    spark: SparkSession,
    root: Path,
    acts: Mapping[int, Act] | None = None,
    posts: list[Post] | None = None,
    **about: Any,
) -> Audit:
    posts = base_posts() if posts is None else posts
    registry = [registered(A), registered(B, log_index=1)]
    chain = write_chain(root / "chain", posts, registry, acts, **about)
    nodes = [
        (None, write_node(root / str(node), honest(posts, key_of(node)), key_of(node)))
        for node in (A, B)
    ]
    return run_audit(spark.sparkContext, read_inputs(chain, nodes))


def found(audit: Audit) -> list[tuple[str, int | None, int, str]]:
    return [
        (row["code"], row["sequence_id"], row["block_number"], row["detail"])
        for row in audit.findings
    ]


def test_audit__payload_while_its_contract_is_paused__is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit = audited(spark, tmp_path, PAUSE_AROUND_12)

    size = len(base_posts()[2].payload)
    assert found(audit) == [("CHAIN_POSTED_WHILE_PAUSED", 3, 12, f"GroupMessages: {size} bytes")]
    assert audit.findings[0]["expected_digest"] is not None


def test_audit__payload_while_the_other_contract_is_paused__is_fine(
    spark: SparkSession, tmp_path: Path
) -> None:
    acts: Mapping[int, Act] = {
        11: lambda h: (
            h.emit("GroupMessages", "Paused", COUNCIL),
            h.emit("GroupMessages", "Unpaused", COUNCIL),
        )[0],
        12: lambda h: h.emit("IdentityUpdates", "Paused", COUNCIL),
    }

    assert found(audited(spark, tmp_path, acts)) == []


def test_audit__payload_beyond_the_bounds__is_found_and_one_at_them_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    sizes = [len(post.payload) for post in base_posts()]
    acts: Mapping[int, Act] = {
        14: lambda h: h.emit("GroupMessages", "PayloadBoundsSet", COUNCIL, sizes[5], sizes[6]),
        17: lambda h: h.emit("GroupMessages", "PayloadBoundsSet", COUNCIL, sizes[7], sizes[7]),
    }

    audit = audited(spark, tmp_path, acts)

    assert found(audit) == [
        ("CHAIN_PAYLOAD_OUT_OF_BOUNDS", 5, 14, f"GroupMessages: {sizes[4]} bytes")
    ]


def test_audit__payload_before_the_one_that_it_follows__is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    posts = base_posts()
    posts[5], posts[6] = replace(posts[5], block=16), replace(posts[6], block=15)

    audit = audited(spark, tmp_path, posts=posts)

    assert found(audit) == [
        ("CHAIN_SEQUENCE_ORDER", 7, 15, "the one before it stands in block 16, log 1006")
    ]


def test_audit__events_that_contradict_each_other__are_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    acts: Mapping[int, Act] = {18: lambda h: h.emit("GroupMessages", "Paused", STRANGER)}

    audit = audited(spark, tmp_path, acts)

    detail = f"GroupMessages: expected Paused by an administrator, got {STRANGER}"
    assert found(audit) == [("CHAIN_EVENTS_CONTRADICT", None, 18, detail)]
    # One grade less, because nothing proves this chain export.
    assert audit.findings[0]["severity"] == "major"
    assert audit.findings[0]["log_index"] is not None


def test_audit__upgrade__is_a_note(spark: SparkSession, tmp_path: Path) -> None:
    acts: Mapping[int, Act] = {
        18: lambda h: (
            h.emit("GroupMessages", "UpgradeAuthorized", COUNCIL, SECOND_CODE),
            h.emit("GroupMessages", "Upgraded", SECOND_CODE),
        )[0]
    }

    audit = audited(spark, tmp_path, acts)

    detail = f"GroupMessages: implementation {SECOND_CODE}"
    assert found(audit) == [("CHAIN_CODE_UPGRADED", None, 18, detail)]
    assert audit.findings[0]["severity"] == "note"


def test_audit__export_that_begins_after_the_deployment__accuses_no_contract(
    spark: SparkSession, tmp_path: Path
) -> None:
    acts = {block: PAUSE_AROUND_12[block] for block in (11, 13)}
    posts = [post for post in base_posts() if post.block > 4]
    registry = [registered(A, block=5), registered(B, block=5, log_index=1)]
    chain = write_chain(tmp_path / "chain", posts, registry, acts, from_block=4)
    nodes = [
        (None, write_node(tmp_path / str(n), honest(posts, key_of(n)), key_of(n), from_block=1))
        for n in (A, B)
    ]

    audit = run_audit(spark.sparkContext, read_inputs(chain, nodes))

    assert found(audit) == []
    assert audit.scope.administration is None
