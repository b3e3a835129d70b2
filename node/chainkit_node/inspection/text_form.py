"""A snapshot as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from chainkit.terminal.tables import columns, section
from chainkit.text.counting import counted
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.inspection.attention import Attention, find_attention
from chainkit_node.inspection.snapshot import (
    BlockStatus,
    Evidence,
    LiveStatus,
    NodeStatus,
    OriginatorKind,
    OriginatorStatus,
    PeerStatus,
    ReorgStatus,
    ReportSummary,
)
from chainkit_node.inspection.storage_snapshot import StorageStatus
from chainkit_node.inspection.words import amount, duration, number, response


def as_text(status: NodeStatus) -> str:
    """Return a snapshot as lines, with the reasons for attention first."""
    lines = [
        *section("node", [_node(status)]),
        *section("attention", list(_attention(find_attention(status))) or ["none"]),
        *section("registry", [_block(status.registry_block, "not followed yet")]),
        *section("chain", [_chain(status)]),
        *section("running", _running(status)),
        "",
        *columns(_ORIGINATORS, (_originator(each, status.live) for each in status.originators)),
        *_gaps(status.originators),
        "",
        *_peers(status.peers),
        *_repairs(status.live),
        *section("storage", list(_storage(status.storage))),
        *section("payer reports", list(_payer_reports(status))),
        *section("left out", [f"{status.left_out} more"] if status.left_out else []),
        "",
        *section("reorgs", [str(status.reorg_count), *map(_reorg, status.reorgs)]),
        *section("reports", list(_reports(status))),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _node(status: NodeStatus) -> str:
    key = f"key {status.public_key[:14]}…, chainkit {status.version}"
    if status.node_id is None:
        return f"not registered, {key}"
    return f"{status.node_id}, {'enabled' if status.is_enabled else 'disabled'}, {key}"


def _attention(found: Sequence[Attention]) -> Iterator[str]:
    """Yield each reason, and a page behind the last one that it is for."""
    for place, each in enumerate(found):
        yield each.text
        if found[place + 1 : place + 2] == () or found[place + 1].page != each.page:
            yield f"  what to do: {each.page}"


def _block(block: BlockStatus | None, otherwise: str) -> str:
    return otherwise if block is None else f"block {block.number} {block.hash[:10]}…"


def _chain(status: NodeStatus) -> str:
    final = "nothing final" if status.final_block is None else f"final up to {status.final_block}"
    place = _block(status.cursor, "before the first block")
    to_go = None if status.live is None else status.live.blocks_to_go
    behind = "" if to_go is None else f", {counted(to_go, 'block')} to go"
    return f"{place} of chain {status.chain_id}, {final}{behind}"


def _running(status: NodeStatus) -> list[str]:
    live = status.live
    if live is None:
        return [f"not known: {status.no_live}"]
    failing = ", ".join(each.name for each in live.failing_checks)
    ready = "ready" if live.is_ready else f"not ready: {failing}"
    own = "known" if live.own_log_waits is None else f"waits: {live.own_log_waits}"
    return [
        f"for {duration(live.uptime_seconds)}, {ready}; own log {own}",
        f"streams: {live.reader_streams} of readers, {live.node_streams} of other nodes here, "
        f"{live.peer_streams} of other nodes' envelopes",
    ]


_ORIGINATORS: Final = ("originator", "kind", "held", "lag", "age", "missing", "disputed")


def _originator(each: OriginatorStatus, live: LiveStatus | None) -> tuple[str, ...]:
    lag = number(each.lag)
    if each.kind is OriginatorKind.CHAIN and live is not None and live.blocks_to_go is not None:
        # Nobody knows how many payloads there are in blocks that are not read yet.
        lag = counted(live.blocks_to_go, "block")
    return (
        str(each.originator_id),
        each.kind,
        str(each.held_id),
        lag,
        duration(each.age_seconds) if each.age_seconds is not None else "-",
        str(each.missing_ids),
        str(each.disputed_ids),
    )


def _gaps(originators: Iterable[OriginatorStatus]) -> list[str]:
    lines = []
    for each in originators:
        shown = [f"{gap.first_id}-{gap.last_id} {gap.state}" for gap in each.ranges]
        more = each.open_gaps - len(shown)
        shown += [f"{more} more"] if more else []
        if shown:
            lines.append(f"of originator {each.originator_id}: {', '.join(shown)}")
        if each.repaired_ids or each.expired_ids:
            closed = f"{each.repaired_ids} ids came later, {each.expired_ids} had expired"
            lines.append(f"of originator {each.originator_id}: {closed}")
    return section("gaps", lines or ["none"])


def _peers(peers: Sequence[PeerStatus]) -> list[str]:
    if not peers:
        return section("peers", ["none"])
    lines = columns(("peer", "state", "for", "received", "compared", "URL"), map(_peer, peers))
    for each in peers:
        lines += section("", [_told(each.node_id, reason) for reason in _reasons(each)])
    return lines


def _told(node_id: int, reason: str) -> str:
    # An error about a node names it already.
    return f"node {node_id}: {reason.removeprefix(f'node {node_id}: ')}"


def _peer(each: PeerStatus) -> tuple[str, ...]:
    live = each.live
    stream = None if live is None else live.stream
    compared = None if live is None else live.comparison
    return (
        str(each.node_id),
        each.state,
        "-" if each.state_seconds is None else duration(each.state_seconds),
        "-" if stream is None else str(stream.received),
        "-" if compared is None else f"{duration(compared.seconds_ago)} ago",
        each.url,
    )


def _reasons(peer: PeerStatus) -> Iterator[str]:
    live = peer.live
    if live is None:
        return
    if live.silent_seconds:
        yield f"no answer for {duration(live.silent_seconds)}"
    if live.stream is not None and live.stream.error is not None:
        yield live.stream.error
    if live.comparison is not None and live.comparison.error is not None:
        is_same = live.stream is not None and live.stream.error == live.comparison.error
        yield "not compared either" if is_same else f"not compared: {live.comparison.error}"
    if live.substitutes:
        yield f"asked in its place: {', '.join(map(str, live.substitutes))}"


def _repairs(live: LiveStatus | None) -> list[str]:
    if live is None:
        return []
    lines = [
        f"{duration(each.seconds_ago)} ago from node {each.peer_id}: {each.missing} missing and "
        f"{each.differing} other envelopes of originator {each.originator_id}{_times(each.times)}"
        for each in live.repairs
    ]
    return section("repairs", lines or ["none since the start"])


def _storage(storage: StorageStatus | None) -> Iterator[str]:
    if storage is None:
        yield "not known before the node's first look"
        return
    yield f"{amount(storage.used_bytes)}{_growth(storage)}; envelopes, estimated:"
    for name, shares in (
        ("kind", storage.kinds),
        ("payer", storage.payers),
        ("expiry", storage.expiries),
    ):
        parts = [f"{each.name} {amount(each.bytes)}" for each in shares if each.bytes]
        yield f"by {name}: {', '.join(parts) or 'none'}"


def _growth(storage: StorageStatus) -> str:
    if storage.growth_bytes is None:
        return ", growth not known yet"
    growth = f", grows by {amount(storage.growth_bytes)} a day"
    if storage.growth_bytes <= 0:
        growth = ", does not grow"
    if storage.room_bytes is None:
        return f"{growth}, room not known"
    room = f"{growth}, room for {amount(storage.room_bytes)}"
    left = storage.seconds_left
    return room if left is None else f"{room}: full in {duration(left)}"


def _payer_reports(status: NodeStatus) -> Iterator[str]:
    waits = status.unattested_payer_report
    if waits is None:
        yield "none of its own waits for signatures"
    else:
        since = f"since {duration(waits.seconds)} ago"
        yield f"ids {waits.first_id} to {waits.last_id} wait for signatures {since}"
    for each in status.refused_payer_reports:
        last = f"the last one of ids {each.first_id} to {each.last_id}"
        yield f"of node {each.originator_id} {each.count} refused in a week, {last}: {each.reason}"


def _times(times: int) -> str:
    return f", {times} times" if times > 1 else ""


def _reorg(each: ReorgStatus) -> str:
    cause = "" if each.rewound_to is None else f"rewind to {each.rewound_to}, "
    return (
        f"{each.reorg_id}: {cause}{counted(each.depth, 'block')} above {each.ancestor.number}, "
        f"{each.kept} kept, {each.moved} moved, {each.dropped} dropped"
    )


def _reports(status: NodeStatus) -> Iterator[str]:
    hosts = () if status.live is None else status.live.hosts
    if not status.tallies and not hosts:
        yield "none"
    if status.own_proofs or status.own_claims:
        yield f"against this node: {status.own_proofs} proved, {status.own_claims} claimed"
    for host in hosts:
        yield f"against this node at {host.node_id}: {host.proved} proved, {host.claimed} claimed"
    for each in status.tallies:
        yield (
            f"{each.count} about node {each.node_id}: {each.misbehavior} {each.weight}, "
            f"from {each.origin}"
        )
    for report in status.reports:
        words = f"{_report(report)}{_times(report.times)}"
        yield f"{moment(report.server_time_ns)} node {report.node_id}: {words}"


def _report(report: ReportSummary) -> str:
    shown = ", ".join(map(_evidence, report.evidence))
    if report.response_seconds is not None:
        shown = response(report.misbehavior, report.response_seconds)
    return f"{report.misbehavior} {report.weight}; {shown or f'{report.bytes} bytes'}"


def _evidence(each: Evidence) -> str:
    return f"{each.sequence_id} of originator {each.originator_id} {each.digest[:10]}…"


def moment(nanoseconds: int) -> str:
    """Return a time, in nanoseconds since 1970, as UTC to the second."""
    try:
        time = datetime.fromtimestamp(nanoseconds // NANOSECONDS_PER_SECOND, UTC)
    except (OverflowError, ValueError, OSError):
        return "?"
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
