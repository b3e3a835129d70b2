"""Builds a snapshot: from the database, which needs no running node, and the live parts if any."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, func, select

from chainkit import __version__
from chainkit.misbehavior.evidence import Weight
from chainkit.text.hexadecimal import hex0x
from chainkit.text.printable import printable
from chainkit.types import NANOSECONDS_PER_SECOND, BlockReference, Node
from chainkit_indexer.inspection.status import ReorgSummary, Status, read_status_within
from chainkit_indexer.registry.history import nodes_at
from chainkit_indexer.storage.envelopes import read_highest, read_last
from chainkit_indexer.storage.store import Store
from chainkit_node.inspection.live import LiveParts
from chainkit_node.inspection.report_summaries import (
    count_against,
    read_newest_reports,
    read_tallies,
)
from chainkit_node.inspection.snapshot import (
    MOST_RANGES,
    MOST_ROWS,
    BlockStatus,
    GapRange,
    NodeStatus,
    OriginatorKind,
    OriginatorStatus,
    PeerLive,
    PeerState,
    PeerStatus,
    RefusedPayerReports,
    ReorgStatus,
    UnattestedPayerReport,
)
from chainkit_node.inspection.storage_status import read_storage
from chainkit_node.inspection.words import shown
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import GapState
from chainkit_node.storage.troubled_reports import read_refusals, read_unattested

_OPEN = (GapState.ASKED.value, GapState.OMITTED.value)


@dataclass(frozen=True, slots=True)
class _Registered:
    """The registry's nodes, and which of them this one is."""

    nodes: Mapping[int, Node]
    own_id: int | None

    def kind_of(self, originator_id: int, chain_ids: Iterable[int]) -> OriginatorKind:
        if originator_id in chain_ids:
            return OriginatorKind.CHAIN
        if originator_id == self.own_id:
            return OriginatorKind.OWN
        is_known = originator_id in self.nodes
        return OriginatorKind.PEER if is_known else OriginatorKind.UNREGISTERED


@dataclass(slots=True)
class _Gaps:
    """One originator's gaps."""

    ids: Counter[GapState] = field(default_factory=Counter)
    """How many ids are in each state."""
    open_count: int = 0
    ranges: list[GapRange] = field(default_factory=list)
    """The first MOST_RANGES open ones."""


def build_status(
    store: Store, now: float, live: LiveParts | None, no_live: str | None
) -> NodeStatus:
    """Return a node's snapshot; all parts from the database are of one moment.

    ``now`` is in seconds since 1970; ``no_live`` says why there is no ``live``. Raises StoreError.
    """
    with store.reading() as connection:
        status = read_status_within(connection, store)
        registered = _registered(connection, status)
        nodes, own_id = registered.nodes, registered.own_id
        held = read_highest(connection) | dict(status.sequence_ids)
        originator_ids = sorted(held.keys() | nodes.keys())
        peer_ids = [each for each in sorted(nodes) if each != own_id]
        left_out = _beyond(originator_ids) + _beyond(peer_ids)
        originators = _originators(
            connection, status, registered, held, originator_ids[:MOST_ROWS], live, now
        )
        against = count_against(connection, own_id)
        own = nodes.get(own_id or 0)
        return NodeStatus(
            taken_at=now,
            version=__version__,
            chain_id=status.identity.chain_id,
            public_key=hex0x(status.identity.node_public_key),
            node_id=own_id,
            is_enabled=own is not None and own.is_enabled,
            registry_block=_block(status.registry.block if status.registry else None),
            cursor=_block(status.cursor),
            final_block=status.final_block,
            originators=originators,
            peers=tuple(_peer(nodes[each], live) for each in peer_ids[:MOST_ROWS]),
            left_out=left_out,
            reorg_count=status.reorg_count,
            reorgs=tuple(map(_reorg, reversed(status.reorgs))),
            tallies=read_tallies(connection),
            reports=read_newest_reports(connection),
            refused_payer_reports=_refused(connection, now),
            unattested_payer_report=_unattested(connection, own_id, now),
            storage=read_storage(connection),
            own_proofs=against.get(Weight.PROVED, 0),
            own_claims=against.get(Weight.CLAIMED, 0),
            live=None if live is None else live.status,
            no_live=None if no_live is None else shown(no_live),
        )


def _refused(connection: Connection, now: float) -> tuple[RefusedPayerReports, ...]:
    found = read_refusals(connection, round(now * NANOSECONDS_PER_SECOND))[:MOST_ROWS]
    return tuple(RefusedPayerReports(*each[:-1], shown(each.reason)) for each in found)


def _unattested(
    connection: Connection, own_id: int | None, now: float
) -> UnattestedPayerReport | None:
    found = None if own_id is None else read_unattested(connection, own_id)
    if found is None:
        return None
    seconds = _age_seconds(found.stored_ns, now)
    return UnattestedPayerReport(found.first_id, found.last_id, seconds)


def _registered(connection: Connection, status: Status) -> _Registered:
    if status.registry is None:
        return _Registered({}, None)
    nodes = {node.node_id: node for node in nodes_at(connection, None)}
    return _Registered(nodes, status.registry.node_id)


def _beyond(ids: Sequence[int]) -> int:
    return max(len(ids) - MOST_ROWS, 0)


def _originators(
    connection: Connection,
    status: Status,
    registered: _Registered,
    held: Mapping[int, int],
    originator_ids: Iterable[int],
    live: LiveParts | None,
    now: float,
) -> tuple[OriginatorStatus, ...]:
    chain_ids = {contract.originator_id for contract in status.identity.contracts}
    gaps, disputed = _gaps(connection), _disputed(connection)
    found = []
    for each in originator_ids:
        kind = registered.kind_of(each, chain_ids)
        held_id = held.get(each, 0)
        highest = _highest(kind, each, held_id, live)
        last = read_last(connection, each)
        missing = gaps.get(each, _Gaps())
        omitted = missing.ids[GapState.OMITTED]
        found.append(
            OriginatorStatus(
                originator_id=each,
                kind=kind,
                held_id=held_id,
                age_seconds=None if last is None else _age_seconds(last[1], now),
                highest_id=highest,
                lag=None if highest is None else highest - held_id,
                missing_ids=missing.ids[GapState.ASKED] + omitted,
                omitted_ids=omitted,
                expired_ids=missing.ids[GapState.EXPIRED],
                repaired_ids=missing.ids[GapState.FILLED],
                open_gaps=missing.open_count,
                ranges=tuple(missing.ranges),
                disputed_ids=disputed.get(each, 0),
            )
        )
    return tuple(found)


def _age_seconds(time_ns: int, now: float) -> float:
    # A new payload of the chain is up to two seconds ahead of the clock (ADR 45).
    return max(now - time_ns / NANOSECONDS_PER_SECOND, 0.0)


def _highest(
    kind: OriginatorKind, originator_id: int, held_id: int, live: LiveParts | None
) -> int | None:
    """Return the highest known id, never less than the held one."""
    if kind is OriginatorKind.OWN:
        return held_id
    if live is None or originator_id not in live.highest:
        return None
    return max(live.highest[originator_id], held_id)


def _gaps(connection: Connection) -> dict[int, _Gaps]:
    """Return the gaps of each originator that has any."""
    gaps = schema.gaps.c
    size = func.sum(gaps.last_id - gaps.first_id + 1)
    query = select(gaps.originator_id, gaps.state, func.count(), size)
    found: defaultdict[int, _Gaps] = defaultdict(_Gaps)
    for row in connection.execute(query.group_by(gaps.originator_id, gaps.state)):
        found[row[0]].ids[GapState(row[1])] = int(row[3])
        if row[1] in _OPEN:
            found[row[0]].open_count += row[2]
    blocks = schema.expired_blocks.c
    learned = select(blocks.originator_id, func.sum(blocks.count)).group_by(blocks.originator_id)
    for originator_id, count in connection.execute(learned):
        found[originator_id].ids[GapState.EXPIRED] += int(count)
    for originator_id, *parts in connection.execute(_first_ranges()):
        found[originator_id].ranges.append(GapRange(*parts))
    return found


def _first_ranges() -> Select[Any]:
    gaps = schema.gaps.c
    place = func.row_number().over(partition_by=gaps.originator_id, order_by=gaps.first_id)
    columns = gaps.originator_id, gaps.first_id, gaps.last_id, gaps.state
    placed = select(*columns, place.label("place")).where(gaps.state.in_(_OPEN)).subquery()
    first = select(*(placed.c[each.name] for each in columns))
    ordered = first.order_by(placed.c.originator_id, placed.c.first_id)
    return ordered.where(placed.c.place <= MOST_RANGES)


def _disputed(connection: Connection) -> dict[int, int]:
    originator_id = schema.disputed_envelopes.c.originator_id
    query = select(originator_id, func.count()).group_by(originator_id)
    return {row[0]: int(row[1]) for row in connection.execute(query)}


def _peer(node: Node, live: LiveParts | None) -> PeerStatus:
    known = None if live is None else live.peers.get(node.node_id)
    state = _state(node, known)
    return PeerStatus(
        node_id=node.node_id,
        url=shown(printable(node.http_address)),
        is_enabled=node.is_enabled,
        state=state,
        state_seconds=None if known is None else _seconds_in(state, known),
        live=known,
    )


def _seconds_in(state: PeerState, known: PeerLive) -> float | None:
    if state is PeerState.UNREACHABLE:
        return known.silent_seconds
    return None if known.stream is None else known.stream.since_seconds


def _state(node: Node, known: PeerLive | None) -> PeerState:
    if not node.is_enabled:
        return PeerState.DISABLED
    if known is None:
        return PeerState.UNKNOWN
    if known.is_unreachable:
        return PeerState.UNREACHABLE
    if known.stream is None:
        return PeerState.OPENING
    if known.stream.is_open:
        return PeerState.OPEN
    return PeerState.OPENING if known.stream.error is None else PeerState.FAILING


def _block(block: BlockReference | None) -> BlockStatus | None:
    return None if block is None else BlockStatus(block.number, hex0x(block.hash))


def _reorg(reorg: ReorgSummary) -> ReorgStatus:
    return ReorgStatus(
        reorg_id=reorg.reorg_id,
        ancestor=BlockStatus(reorg.ancestor.number, hex0x(reorg.ancestor.hash)),
        depth=reorg.depth,
        rewound_to=reorg.rewound_to,
        kept=reorg.kept,
        moved=reorg.moved,
        dropped=reorg.dropped,
    )
