"""Reports about the chain's payloads, compared with the node's own final rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.misbehavior.report import safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import parse_originator_envelope, sign_originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit_indexer.storage import schema
from chainkit_node.reporting.chain_rows import ChainRows
from chainkit_node.reporting.refusals import RefutedReport
from support.chains.fake_chain import Post
from support.reporting import ACCUSED, KEYS, NOW_NS, Host, envelope

KEY = KEYS[ACCUSED]
HASH = bytes(31) + b"\1"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "node.db")
    made.chain.mine([Post("final"), Post("other")])
    for name in ("one", "two", "three", "soft"):
        made.chain.mine([Post(name)])
    made.indexer.catch_up()
    yield made
    made.close()


def served(host: Host, sequence_id: int, hash_: bytes | None = None, **changes: int) -> bytes:
    """The envelope of a row as the accused served it, with its own signature."""
    own = next(
        row[-1] for row in host.indexer.rows(schema.envelopes) if row[:2] == (0, sequence_id)
    )
    parsed = parse_originator_envelope(own)
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(
        parsed.unsigned_originator_envelope
    )
    for name, value in changes.items():
        setattr(unsigned, name, value)
    content = unsigned.SerializeToString() if changes else parsed.unsigned_originator_envelope
    return sign_originator_envelope(content, hash_ or parsed.transaction_hash, KEY)


def reported(host: Host, *evidence: bytes) -> BaseException | None:
    kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
    [error] = host.submit(safety_report(ACCUSED, kind, evidence, NOW_NS, is_from_node=False))
    return error


@pytest.mark.conforms("N50", "N54")
def test_inconsistency__envelope_that_the_chain_has__is_refuted(host: Host) -> None:
    error = reported(host, served(host, 1), served(host, 2))

    assert isinstance(error, RefutedReport)
    assert "the chain has exactly what the node served" in str(error)
    assert host.rows() == []


@pytest.mark.conforms("N50")
@pytest.mark.parametrize(
    ("changes", "hash_"),
    [
        ({"originator_ns": 5}, None),
        ({}, HASH),
        ({"originator_sequence_id": 2}, None),
        ({"originator_sequence_id": 2**63}, None),
        ({"originator_sequence_id": 10**6}, None),
        ({"originator_node_id": 7}, None),
    ],
)
def test_inconsistency__envelope_that_differs__is_stored_as_a_claim(
    host: Host, changes: dict[str, int], hash_: bytes | None
) -> None:
    assert reported(host, served(host, 1, hash_, **changes)) is None
    assert [row.weight for row in host.rows()] == ["claimed"]


def test_inconsistency__one_of_two_envelopes_differs__is_stored(host: Host) -> None:
    assert reported(host, served(host, 1), served(host, 2, originator_ns=5)) is None


def test_inconsistency__envelope_that_is_not_final_yet__is_stored_as_a_claim(host: Host) -> None:
    last = len(host.indexer.rows(schema.envelopes))

    assert reported(host, served(host, last)) is None
    assert [row.weight for row in host.rows()] == ["claimed"]


def test_holds__bytes_that_are_no_envelope_of_the_chain__are_not_held(host: Host) -> None:
    rows = ChainRows(host.store)

    assert rows.holds(served(host, 1))
    assert not rows.holds(b"\xff")
    assert not rows.holds(envelope(1))
