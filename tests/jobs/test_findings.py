"""Each code has cases that must raise it, and near misses that must not.

All cases are nodes of one network that is audited once: a case is what its node serves.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import pytest
from pyspark.sql import SparkSession

from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SECP256K1_ORDER, SigningKey, keccak256
from chainkit_jobs.reconcile.audit import Audit, run_audit
from support.audit.audit_exports import (
    GROUP,
    MALFORMED_SEQUENCE,
    Post,
    Serve,
    base_posts,
    honest,
    key_of,
    write_scene,
)
from support.audit.inputs import read_inputs
from support.payloads import commit

Expected = list[tuple[str, int]]

STRANGER = key_of(999_999)


def altered(sequence_id: int, **changes: object) -> Serve:
    """Honest but for one post, which is served with some fields changed."""

    def serve(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
        return honest(
            [replace(p, **changes) if p.sequence_id == sequence_id else p for p in posts], key
        )

    return serve


def added(*posts: Post) -> Serve:
    return lambda chain, key: honest(chain, key) + [post.envelope(key) for post in posts]


def replaced(sequence_id: int, envelope: object) -> Serve:
    """Honest but for one envelope, computed from its post and the node's key."""

    def serve(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
        right = {p.sequence_id: p.envelope(key) for p in posts if p.payload != b"\xff not one"}
        [post] = [p for p in posts if p.sequence_id == sequence_id]
        right[sequence_id] = envelope(post, key)  # type: ignore[operator]
        return list(right.values())

    return serve


def high_s(post: Post, key: SigningKey) -> bytes:
    envelope = envelopes_pb2.OriginatorEnvelope.FromString(post.envelope(key))
    signature = envelope.blockchain_proof.node_signature.bytes
    mirrored = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    envelope.blockchain_proof.node_signature.bytes = (
        signature[:32] + mirrored.to_bytes(32, "big") + bytes([signature[64] ^ 1])
    )
    return envelope.SerializeToString()


def originator_signature(post: Post, key: SigningKey) -> bytes:
    """An envelope with the other kind of proof, which payloads that nodes originate have."""
    envelope = envelopes_pb2.OriginatorEnvelope(unsigned_originator_envelope=post.unsigned)
    envelope.originator_signature.bytes = b"\x00" * 65
    return envelope.SerializeToString()


def of_originator(originator_id: int, post: Post, key: SigningKey) -> bytes:
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(post.unsigned)
    unsigned.originator_node_id = originator_id
    return sign_originator_envelope(unsigned.SerializeToString(), post.transaction_hash, key)


def unordered_fields(post: Post, key: SigningKey) -> bytes:
    """The same envelope with its two outer fields in the other order: not what is signed."""
    whole = envelopes_pb2.OriginatorEnvelope.FromString(post.envelope(key))
    proof = envelopes_pb2.OriginatorEnvelope(blockchain_proof=whole.blockchain_proof)
    unsigned = envelopes_pb2.OriginatorEnvelope(
        unsigned_originator_envelope=whole.unsigned_originator_envelope
    )
    return proof.SerializeToString() + unsigned.SerializeToString()


def outer_form(change: Callable[[bytes], bytes]) -> Callable[[Post, SigningKey], bytes]:
    """The same envelope, its outer message written otherwise: not what is signed."""
    return lambda post, key: change(post.envelope(key))


def long_length(envelope: bytes) -> bytes:
    """The first length in one byte more than it needs."""
    end = next(place for place in range(1, 10) if envelope[place] < 0x80)
    return envelope[:end] + bytes([envelope[end] | 0x80, 0]) + envelope[end + 1 :]


OUTER_FORMS: dict[str, Callable[[Post, SigningKey], bytes]] = {
    "fields in another order": unordered_fields,
    "a field twice": outer_form(lambda data: data + data),
    "an empty field before": outer_form(lambda data: b"\x0a\x00" + data),
    "an unknown field": outer_form(lambda data: data + b"\xf8\x07\x01"),
    "a longer length": outer_form(long_length),
    "an empty proof more": outer_form(lambda data: data + b"\x1a\x00"),
}

OTHER = commit(GROUP, size=300, seed=77)
[MALFORMED] = [post for post in base_posts() if post.sequence_id == MALFORMED_SEQUENCE]

CASES: dict[str, tuple[Serve, Expected]] = {
    "honest": (honest, []),
    "other order of rows": (lambda posts, key: honest(posts, key)[::-1], []),
    **{
        f"outer message with {name}": (replaced(3, encode), [("ENVELOPE_FORM_DIFFERS", 3)])
        for name, encode in OUTER_FORMS.items()
    },
    "payload altered": (altered(3, payload=OTHER), [("ENVELOPE_ALTERED", 3)]),
    "time altered": (altered(3, block=13), [("ENVELOPE_ALTERED", 3)]),
    "transaction altered": (altered(3, transaction=b"\x07" * 32), [("ENVELOPE_ALTERED", 3)]),
    "two sequences swapped": (
        lambda posts, key: honest(
            [replace(p, sequence_id={5: 6, 6: 5}.get(p.sequence_id, p.sequence_id)) for p in posts],
            key,
        ),
        [("ENVELOPE_ALTERED", 5), ("ENVELOPE_ALTERED", 6)],
    ),
    "one omitted": (lambda posts, key: honest(posts[1:], key), [("ENVELOPE_MISSING", 1)]),
    "the last omitted": (lambda posts, key: honest(posts[:-1], key), [("ENVELOPE_MISSING", 8)]),
    "nothing served": (
        lambda posts, key: [],
        [("ENVELOPE_MISSING", n) for n in (1, 2, 3, 5, 6, 7, 8)],
    ),
    "the next invented": (added(Post(9, 18, OTHER)), [("ENVELOPE_INVENTED", 9)]),
    "the highest possible invented": (
        added(Post(2**64 - 1, 18, OTHER)),
        [("ENVELOPE_INVENTED", 2**64 - 1)],
    ),
    "sequence zero invented": (added(Post(0, 18, OTHER)), [("ENVELOPE_INVENTED", 0)]),
    "another originator's with a proof": (
        replaced(3, lambda post, key: of_originator(1, post, key)),
        [("ENVELOPE_INVENTED", 3), ("ENVELOPE_MISSING", 3)],
    ),
    "the same bytes twice": (
        lambda posts, key: honest(posts, key) + honest(posts, key)[:1],
        [("ENVELOPE_DUPLICATED", 1)],
    ),
    "the same altered bytes twice": (
        lambda posts, key: (
            altered(3, payload=OTHER)(posts, key) + altered(3, payload=OTHER)(posts[2:3], key)
        ),
        [("ENVELOPE_ALTERED", 3), ("ENVELOPE_DUPLICATED", 3)],
    ),
    "one right and one altered": (
        added(Post(3, 12, OTHER)),
        [("ENVELOPE_ALTERED", 3), ("ENVELOPE_DUPLICATED", 3)],
    ),
    "one payload under two sequences": (
        lambda posts, key: [*honest(posts, key), replace(posts[2], sequence_id=9).envelope(key)],
        [("ENVELOPE_INVENTED", 9)],
    ),
    "no protobuf": (
        lambda posts, key: [*honest(posts, key), b"\xff\xff"],
        [("ENVELOPE_UNREADABLE", 1008)],
    ),
    "no blockchain proof": (
        replaced(8, originator_signature),
        [("ENVELOPE_MISSING", 8), ("ENVELOPE_UNREADABLE", 1007)],
    ),
    "signed by a stranger": (
        replaced(3, lambda post, key: post.envelope(STRANGER)),
        [("SIGNATURE_INVALID", 3)],
    ),
    "signature malleated": (replaced(3, high_s), [("SIGNATURE_INVALID", 3)]),
    "altered and signed by a stranger": (
        replaced(3, lambda post, key: replace(post, payload=OTHER).envelope(STRANGER)),
        [("ENVELOPE_ALTERED", 3), ("SIGNATURE_INVALID", 3)],
    ),
    "malformed payload served": (added(MALFORMED), [("QUARANTINED_SERVED", MALFORMED_SEQUENCE)]),
    "malformed payload served altered": (
        added(replace(MALFORMED, payload=OTHER)),
        [("ENVELOPE_ALTERED", MALFORMED_SEQUENCE)],
    ),
}

NODE_IDS = dict(zip(CASES, count(100, 100), strict=False))


@pytest.fixture(scope="module", params=[False, True], ids=["table lies", "table is right"])
def audit(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Audit:
    serves = {NODE_IDS[name]: serve for name, (serve, _) in CASES.items()}
    root = tmp_path_factory.mktemp("scene")
    chain, nodes = write_scene(root, serves, is_table_right=request.param)
    return run_audit(spark.sparkContext, read_inputs(chain, nodes))


@pytest.mark.parametrize("case", CASES)
def test_audit__one_node_serves_so__exactly_these_findings(audit: Audit, case: str) -> None:
    found = [
        (row["code"], int(row["sequence_id"]))
        for row in audit.findings
        if row["node_id"] == NODE_IDS[case]
    ]

    assert sorted(found) == sorted(CASES[case][1])


def test_audit__chain_complete__nothing_found_about_the_chain(audit: Audit) -> None:
    assert [row for row in audit.findings if row["node_id"] is None] == []


def one(audit: Audit, case: str, code: str) -> dict[str, object]:
    [row] = [
        row for row in audit.findings if row["node_id"] == NODE_IDS[case] and row["code"] == code
    ]
    return row


def test_finding__envelope_altered__carries_both_sides(audit: Audit) -> None:
    row = one(audit, "payload altered", "ENVELOPE_ALTERED")
    [post] = [post for post in base_posts() if post.sequence_id == 3]
    key = key_of(NODE_IDS["payload altered"])

    served = replace(post, payload=OTHER)
    assert row["envelope"] == served.envelope(key)
    assert row["expected_digest"] == keccak256(
        b"blockchain|" + post.unsigned + post.transaction_hash
    )
    assert row["served_digest"] == keccak256(
        b"blockchain|" + served.unsigned + post.transaction_hash
    )
    assert (row["block_number"], row["transaction_hash"]) == (12, post.transaction_hash)
    assert row["node_public_key"] == key.public_key
    # One grade less, because nothing proves this chain export.
    assert row["severity"] == "major"
    assert row["signature_problem"] is None


def test_finding__envelope_missing__names_the_chains_log_and_no_served_bytes(audit: Audit) -> None:
    row = one(audit, "one omitted", "ENVELOPE_MISSING")

    assert row["block_number"] == 10
    assert row["transaction_hash"] == base_posts()[0].transaction_hash
    assert row["envelope"] is row["served_digest"] is None


def test_finding__stranger_signed__names_both_addresses(audit: Audit) -> None:
    row = one(audit, "signed by a stranger", "SIGNATURE_INVALID")

    assert str(row["detail"]).startswith("signed by 0x")
    assert "registered is 0x" in str(row["detail"])


def test_counts__per_node__tell_expected_served_and_matched(audit: Audit) -> None:
    def counts(case: str) -> tuple[int, int, int]:
        row = audit.counts[NODE_IDS[case]]
        return row["expected"], row["served"], row["matched"]

    assert counts("honest") == (7, 7, 7)
    assert counts("nothing served") == (7, 0, 0)
    assert counts("payload altered") == (7, 7, 6)
    assert counts("the same bytes twice") == (7, 8, 7)
    assert counts("no protobuf") == (7, 8, 7)
