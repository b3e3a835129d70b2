"""Snapshots of nodes, healthy and not, as forms of them are tested with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chainkit_node.inspection.snapshot import (
    BlockStatus,
    ChainEndpoint,
    ChainSide,
    ComparisonStatus,
    Evidence,
    FailingCheck,
    GapRange,
    HostStatus,
    LiveStatus,
    NodeStatus,
    OriginatorKind,
    OriginatorStatus,
    PeerLive,
    PeerState,
    PeerStatus,
    RefusedPayerReports,
    ReorgStatus,
    RepairStatus,
    ReportSummary,
    ReportTally,
    StreamStatus,
    UnattestedPayerReport,
)
from chainkit_node.inspection.storage_snapshot import SizeOfDay, StorageStatus, StoredShare
from chainkit_node.inspection.words import shown

HOSTILE = "<img src=//x onerror=alert(1)><b>\x1b[2J\u202e"
"""A stranger's text that would be markup on a page, and rewrite a terminal."""

NS = 1_700_000_000 * 10**9


def originator(
    originator_id: int, kind: OriginatorKind, held: int, lag: int | None = 0, missing: int = 0
) -> OriginatorStatus:
    gaps = (GapRange(3, 2 + missing, "omitted"),) if missing else ()
    return OriginatorStatus(
        originator_id=originator_id,
        kind=kind,
        held_id=held,
        age_seconds=12.0 if held else None,
        highest_id=None if lag is None else held + lag,
        lag=lag,
        missing_ids=missing,
        omitted_ids=missing,
        expired_ids=0,
        repaired_ids=missing,
        open_gaps=len(gaps),
        ranges=gaps,
        disputed_ids=0,
    )


def peer(node_id: int, state: PeerState, error: str | None = None) -> PeerStatus:
    stream = StreamStatus(state is PeerState.OPEN, 93.5, 42, None if error is None else error)
    silent = 61.0 if state is PeerState.UNREACHABLE else 0.0
    live = PeerLive(
        stream,
        silent,
        state is PeerState.UNREACHABLE,
        (100, 500) if silent else (),
        ComparisonStatus(31.0, 3, error),
    )
    url = f"https://node-{node_id}.example.org"
    seconds = silent or stream.since_seconds
    return PeerStatus(node_id, url, state is not PeerState.DISABLED, state, seconds, live)


def storage(days: float | None = None) -> StorageStatus:
    """A database that grows, and is full in so many days."""
    payers = [StoredShare(f"0x{each:02x}" + "7c" * 19, 9**each) for each in range(10, 0, -1)]
    return StorageStatus(
        looked_at=1_700_000_000.0,
        used_bytes=812_345_678_901,
        room_bytes=None if days is None else round(days * 2 * 10**9),
        growth_bytes=2 * 10**9,
        seconds_left=None if days is None else days * 86_400,
        kinds=(StoredShare("group_message", 700 * 10**9), StoredShare("key_package", 12_000)),
        payers=(*payers, StoredShare("others", 4), StoredShare("nobody", 3)),
        expiries=(StoredShare("expired", 0), StoredShare("30 d", 600), StoredShare("never", 7)),
        sizes=tuple(
            SizeOfDay(1_692_000_000 + each * 86_400, (600 + each) * 10**9) for each in range(90)
        ),
    )


def _well() -> LiveStatus:
    return LiveStatus(
        uptime_seconds=300.0,
        is_ready=True,
        failing_checks=(),
        blocks_to_go=0,
        chain=ChainSide(None, (ChainEndpoint("http://one", "available", 0, None, False),), 0, 0),
        own_log_waits=None,
        clock_wrong=None,
        storage_short=None,
        twin=None,
        certificate_wrong=None,
        certificate_seconds_left=0.0,
        publish_refused=None,
        late_seconds=0.0,
        reader_streams=2,
        node_streams=3,
        peer_streams=1,
        repairs=(),
        hosts=(),
    )


def _badly() -> LiveStatus:
    refused = "http://one: expected an answer, got connection refused"
    return replace(
        _well(),
        uptime_seconds=7_300.0,
        is_ready=False,
        failing_checks=(
            FailingCheck("head", "expected 60.0, got 75.2 seconds"),
            FailingCheck("cursor", "expected 10, got 1234 blocks"),
        ),
        blocks_to_go=1_234,
        chain=ChainSide(
            refused,
            (
                ChainEndpoint("http://one", "cooling", 7, refused, False),
                ChainEndpoint("http://two", "available", 0, None, True),
            ),
            3,
            1,
        ),
        own_log_waits="own log: expected an answer",
        clock_wrong="clock: expected one within 120 s of node 200, got one 600 s ahead",
        storage_short="publish: expected at least 536870912 bytes free for the database, got 7",
        twin="nothing is originated: envelope 9, which this process did not sign",
        certificate_wrong="others refuse it: certificate has expired",
        publish_refused="clock: expected one within 120 s of node 200, got one 600 s ahead",
        late_seconds=3.21,
        reader_streams=1_000,
        node_streams=4,
        repairs=(RepairStatus(4.0, 200, 300, 17, 2, 3),),
        hosts=(HostStatus(200, 0, 7),),
    )


def healthy(**changed: Any) -> NodeStatus:
    """A node with one peer, both well; ``changed`` are other fields."""
    status = NodeStatus(
        taken_at=1_700_000_000.0,
        version="0.1.0",
        chain_id=31337,
        public_key="0x04" + "ab" * 64,
        node_id=100,
        is_enabled=True,
        registry_block=BlockStatus(7, "0x" + "1f" * 32),
        cursor=BlockStatus(12, "0x" + "2f" * 32),
        final_block=10,
        originators=(
            originator(0, OriginatorKind.CHAIN, 5, None),
            originator(100, OriginatorKind.OWN, 8),
            originator(200, OriginatorKind.PEER, 9),
        ),
        peers=(peer(200, PeerState.OPEN),),
        left_out=0,
        reorg_count=0,
        reorgs=(),
        tallies=(),
        reports=(),
        storage=storage(),
        refused_payer_reports=(),
        unattested_payer_report=None,
        own_proofs=0,
        own_claims=0,
        live=_well(),
        no_live=None,
    )
    return replace(status, **changed)


def troubled() -> NodeStatus:
    """A node with one of every trouble, large numbers and hostile strangers."""
    text = shown(HOSTILE + "long " * 80)
    evidence = (Evidence(300, 7, "0x" + "3a" * 32), Evidence(300, 7, "0x" + "4b" * 32))
    kinds = ("ab", "DUPLICATE_SEQUENCE_ID", "proved", "node")
    return healthy(
        cursor=BlockStatus(21_234_567, "0x" + "2f" * 32),
        final_block=21_234_512,
        is_enabled=False,
        originators=(
            originator(0, OriginatorKind.CHAIN, 123_456_789, None),
            originator(100, OriginatorKind.OWN, 8),
            originator(200, OriginatorKind.PEER, 1_234_567_890, 12_345, 1_234),
            originator(300, OriginatorKind.PEER, 0, 0),
            originator(4_294_967_295, OriginatorKind.UNREGISTERED, 5, None),
        ),
        peers=(
            peer(200, PeerState.OPEN),
            peer(300, PeerState.UNREACHABLE, "node 300: expected an answer within 4 s, got none"),
            PeerStatus(
                400, text, True, PeerState.FAILING, 5.0, peer(400, PeerState.FAILING, text).live
            ),
            peer(500, PeerState.OPENING),
            PeerStatus(600, "https://old.example.org", False, PeerState.DISABLED, None, None),
        ),
        reorg_count=2,
        reorgs=(
            ReorgStatus(2, BlockStatus(21_234_500, "0x" + "5c" * 32), 12, 21_234_500, 3, 1, 0),
            ReorgStatus(1, BlockStatus(21_000_000, "0x" + "5d" * 32), 2, None, 40, 2, 1),
        ),
        tallies=(
            ReportTally(100, *kinds[1:], 1),
            ReportTally(300, "UNRESPONSIVE_NODE", "claimed", "client", 12_345),
        ),
        reports=(
            ReportSummary(NS, 300, *kinds[1:], evidence, None, 900),
            ReportSummary(NS - 9, 300, "SLOW_NODE", "claimed", "client", (), 4.25, 300),
            ReportSummary(
                NS - 10, 300, "UNRESPONSIVE_NODE", "claimed", "client", (), 4.294967295, 300
            ),
        ),
        storage=storage(days=9.0),
        refused_payer_reports=(RefusedPayerReports(300, 2, 101, 200, text),),
        unattested_payer_report=UnattestedPayerReport(1_001, 2_000, 30_000.0),
        own_proofs=1,
        own_claims=3,
        live=_badly(),
        left_out=3,
    )
