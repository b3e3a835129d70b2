"""Snapshots of a real database, with and without the parts that a running node adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference
from chainkit_indexer.storage.journal import insert_reorg_between
from chainkit_node.inspection import building, report_summaries
from chainkit_node.inspection.attention import Reason, find_attention
from chainkit_node.inspection.building import build_status
from chainkit_node.inspection.live import LiveParts
from chainkit_node.inspection.snapshot import (
    NO_LIVE,
    Evidence,
    GapRange,
    NodeStatus,
    OriginatorKind,
    PeerLive,
    PeerState,
    ReportTally,
)
from chainkit_node.inspection.text_form import as_text
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from support.chains.fake_chain import update
from support.network.held_logs import Ignored
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.node_status import healthy, peer
from support.reporting import (
    ACCUSED,
    KEYS,
    NOW_NS,
    OTHER,
    OWN,
    Host,
    double,
    gap,
    proof,
    register,
    slow,
)

PEER = Originator(ACCUSED, KEYS[ACCUSED])
UNLISTED = Originator(900, SigningKey(b"\x09" * 32))
NOW = BEGIN_NS / SECOND_NS + 60.0


def take(host: Host, originator: Originator, *envelopes: bytes) -> None:
    intake = Intake(
        host.store,
        Ignored(),
        lambda: BEGIN_NS + 60 * SECOND_NS,
        lambda new, late: None,
        lambda _: None,
        UngivenIds(lambda: None, lambda: True),
    )
    key = originator.key.public_key
    intake.take(list(envelopes), Source(originator.node_id, key, is_direct=True))


def built(host: Host, live: LiveParts | None = None) -> NodeStatus:
    return build_status(host.store, NOW, live, None if live else NO_LIVE)


def live_parts(**states: PeerState) -> LiveParts:
    """A running node's parts; the originator 200 says that it has 12 envelopes."""
    status = healthy().live
    assert status is not None
    known = {int(name[1:]): peer(int(name[1:]), state).live for name, state in states.items()}
    peers = {each: live for each, live in known.items() if live is not None}
    return LiveParts(status, peers, {ACCUSED: 12})


def test_build__empty_database__has_the_chain_and_no_registry(host: Host) -> None:
    status = built(host)

    assert (status.node_id, status.is_enabled, status.registry_block) == (None, False, None)
    assert (status.cursor, status.final_block, status.peers) == (None, None, ())
    assert status.public_key == "0x" + KEYS[OWN].public_key.hex()
    assert (status.live, status.no_live) == (None, NO_LIVE)
    assert [each.reason for each in find_attention(status)] == [Reason.NOT_REGISTERED]


def test_build__followed_chain__has_its_cursor_and_sequence_ids(host: Host) -> None:
    register(host)
    host.chain.mine([update("a"), update("b")], [])
    host.indexer.catch_up()

    status = built(host)

    assert status.cursor is not None
    assert status.cursor.number == host.chain.head.number
    [chain] = [each for each in status.originators if each.kind is OriginatorKind.CHAIN]
    assert (chain.originator_id, chain.held_id, chain.lag) == (0, 2, None)


def test_build__log_with_gap_and_dispute__counts_the_ids_of_each(host: Host) -> None:
    register(host)
    log = PEER.log(9)
    take(host, PEER, *log[:2], *log[5:])
    take(host, PEER, PEER.signed(1, 1.5))

    status = built(host, live_parts(_200=PeerState.OPEN))

    [found] = [each for each in status.originators if each.originator_id == ACCUSED]
    assert (found.kind, found.held_id, found.highest_id, found.lag) == ("peer", 9, 12, 3)
    assert found.age_seconds == pytest.approx(51.0)
    assert (found.missing_ids, found.omitted_ids, found.open_gaps) == (3, 3, 1)
    assert found.ranges == (GapRange(3, 5, "omitted"),)
    assert found.disputed_ids == 1
    take(host, PEER, log[3])
    [filled] = [each for each in built(host).originators if each.originator_id == ACCUSED]
    assert (filled.missing_ids, filled.repaired_ids, filled.open_gaps) == (2, 1, 2)
    assert (filled.highest_id, filled.lag) == (None, None)


def test_build__many_gaps__lists_the_first_of_each_originator(host: Host) -> None:
    register(host)
    for originator in (PEER, UNLISTED):
        take(host, originator, *originator.log(24)[::2])

    found = {each.originator_id: each for each in built(host).originators}

    assert found[UNLISTED.node_id].kind is OriginatorKind.UNREGISTERED
    for originator in (PEER, UNLISTED):
        each = found[originator.node_id]
        assert each.open_gaps == each.missing_ids == 11
        assert [gap.first_id for gap in each.ranges] == [2, 4, 6, 8, 10]


def test_build__own_log__lags_behind_nobody_also_without_a_running_node(host: Host) -> None:
    register(host)
    own = Originator(OWN, KEYS[OWN])
    take(host, own, *own.log(4))

    [found] = [each for each in built(host).originators if each.kind is OriginatorKind.OWN]

    assert (found.held_id, found.highest_id, found.lag) == (4, 4, 0)


@pytest.mark.parametrize("state", [PeerState.OPEN, PeerState.OPENING, PeerState.UNREACHABLE])
def test_build__peers__have_the_state_of_their_stream(host: Host, state: PeerState) -> None:
    register(host)

    status = built(host, live_parts(_200=state))

    assert [(each.node_id, each.state) for each in status.peers] == [
        (ACCUSED, state),
        (OTHER, PeerState.DISABLED),
    ]
    assert status.peers[0].url == "<img src=//x onerror=alert(1)><b>\\x1b[2J\\u202e"
    assert [each.state for each in built(host).peers] == [PeerState.UNKNOWN, PeerState.DISABLED]


def test_build__peer_whose_stream_ended_with_an_error__is_failing(host: Host) -> None:
    register(host)
    parts = live_parts(_200=PeerState.OPENING)
    stream = parts.peers[ACCUSED].stream
    assert stream is not None
    failed = replace(parts.peers[ACCUSED], stream=replace(stream, error="refused"))

    status = built(host, replace(parts, peers={ACCUSED: failed}))

    assert status.peers[0].state is PeerState.FAILING


def test_build__time_in_a_state__is_that_states_and_no_other_ones(host: Host) -> None:
    register(host)
    parts = live_parts(_200=PeerState.OPEN)
    open_peer = parts.peers[ACCUSED]
    assert open_peer.stream is not None
    # Its stream is what it was for a minute; it has given no answer for nine seconds.
    silent = replace(
        open_peer,
        stream=replace(open_peer.stream, since_seconds=60.0),
        silent_seconds=9.0,
        is_unreachable=True,
    )

    def seconds(known: PeerLive) -> float | None:
        return built(host, replace(parts, peers={ACCUSED: known})).peers[0].state_seconds

    assert seconds(silent) == 9.0
    assert seconds(replace(silent, is_unreachable=False)) == 60.0


def test_build__reports__are_counted_and_the_newest_shown_with_evidence(host: Host) -> None:
    register(host)
    host.writer.submit_own_safety(ACCUSED, Misbehavior.OUT_OF_ORDER, gap(5))
    host.submit(proof(7, OTHER), slow(1), proof(6, OWN))

    status = built(host)

    assert status.tallies == (
        ReportTally(OWN, "DUPLICATE_SEQUENCE_ID", "proved", "client", 1),
        ReportTally(ACCUSED, "SLOW_NODE", "claimed", "client", 1),
        ReportTally(ACCUSED, "OUT_OF_ORDER", "claimed", "node", 1),
        ReportTally(OTHER, "DUPLICATE_SEQUENCE_ID", "proved", "client", 1),
    )
    assert (status.own_proofs, status.own_claims) == (1, 0)
    newest, late, other, oldest = status.reports
    assert (newest.node_id, newest.server_time_ns) == (OWN, NOW_NS + 3)
    assert (late.response_seconds, late.evidence) == (0.5, ())
    assert [(each.originator_id, each.sequence_id) for each in other.evidence] == [(OTHER, 7)] * 2
    assert len({each.digest for each in other.evidence}) == 2
    assert [each.sequence_id for each in oldest.evidence] == [7, 5]
    assert Reason.ACCUSED in [each.reason for each in find_attention(status)]


def test_build__reports_that_say_the_same__are_one_row_with_their_number(host: Host) -> None:
    register(host)
    host.submit(*map(slow, range(8)), proof(7, OTHER))

    proved, late = built(host).reports

    assert (proved.node_id, proved.times) == (OTHER, 1)
    assert (late.node_id, late.times, late.server_time_ns) == (ACCUSED, 8, NOW_NS + 7)
    assert ", 8 times" in as_text(built(host))


def test_build__large_report__is_listed_and_not_looked_into(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(host)
    host.writer.submit_own_safety(ACCUSED, Misbehavior.DUPLICATE_SEQUENCE_ID, double(3))
    host.restart()
    [shown] = built(host).reports

    monkeypatch.setattr(report_summaries, "_MOST_BYTES", shown.bytes - 1)

    [large] = built(host).reports
    assert large == replace(shown, evidence=())
    assert all(isinstance(each, Evidence) for each in shown.evidence)


def test_build__reorgs__are_the_newest_first(host: Host) -> None:
    with host.store.writing() as connection:
        for height in (20, 30):
            ancestor = BlockReference(height - 3, b"\3" * 32)
            insert_reorg_between(connection, BlockReference(height, b"\4" * 32), ancestor)

    status = built(host)

    assert status.reorg_count == 2
    assert [(each.reorg_id, each.ancestor.number, each.depth) for each in status.reorgs] == [
        (2, 27, 3),
        (1, 17, 3),
    ]


def test_build__more_rows_than_are_listed__says_how_many_are_left_out(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(host)
    monkeypatch.setattr(building, "MOST_ROWS", 1)

    status = built(host)

    assert (len(status.originators), len(status.peers)) == (1, 1)
    assert status.left_out == 2 + 1
