"""Reasons for a person to look at a node, found in a snapshot of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.text.counting import counted
from chainkit_node.inspection.snapshot import (
    LiveStatus,
    NodeStatus,
    OriginatorKind,
    PeerState,
    PeerStatus,
)

_LATE_SECONDS: Final = 1.0
_MOST_NAMED: Final = 5
"""Nodes in one reason."""
_MOST_WHY: Final = 120
"""Characters of an error: the peer's own row has more."""


class Reason(StrEnum):
    """The names of all reasons; ``docs/node.md`` has a row for each."""

    NOT_REGISTERED = "not_registered"
    DISABLED = "disabled"
    ACCUSED = "accused"
    OWN_LOG_FORKED = "own_log_forked"
    TWIN_FOUND = "twin_found"
    CLOCK_WRONG = "clock_wrong"
    STORAGE_SHORT = "storage_short"
    OWN_LOG_WAITS = "own_log_waits"
    CERTIFICATE_WRONG = "certificate_wrong"
    OVERLOADED = "overloaded"
    NOT_READY = "not_ready"
    PEER_UNREACHABLE = "peer_unreachable"
    PEER_FAILING = "peer_failing"
    ENVELOPES_OMITTED = "envelopes_omitted"


@dataclass(frozen=True, slots=True)
class Attention:
    """One reason, in words."""

    reason: Reason
    text: str


def find_attention(status: NodeStatus) -> tuple[Attention, ...]:
    """Return all reasons, the gravest first; none for a node that is well."""
    found = (*_of_registry(status), *_of_originators(status))
    live = () if status.live is None else tuple(_of_live(status.live, status.node_id is not None))
    peers = (attention for peer in status.peers for attention in _of_peer(peer))
    order = list(Reason)
    return tuple(sorted((*found, *live, *peers), key=lambda each: order.index(each.reason)))


def _of_registry(status: NodeStatus) -> Iterator[Attention]:
    if status.node_id is None:
        text = "the registry does not list this node's key"
        if status.registry_block is None:
            text = "the registry was not followed yet"
        yield Attention(Reason.NOT_REGISTERED, text)
    elif not status.is_enabled:
        yield Attention(Reason.DISABLED, "the registry has this node disabled")
    if status.own_proofs:
        proofs = counted(status.own_proofs, "hosted report")
        yield Attention(Reason.ACCUSED, f"{proofs} with a proof against this node")


def _of_originators(status: NodeStatus) -> Iterator[Attention]:
    for each in status.originators:
        if each.kind is OriginatorKind.OWN and each.disputed_ids:
            text = f"this node signed two envelopes under {counted(each.disputed_ids, 'id')}"
            yield Attention(Reason.OWN_LOG_FORKED, text)
        if each.omitted_ids:
            text = f"originator {each.originator_id} leaves out {counted(each.omitted_ids, 'id')}"
            yield Attention(Reason.ENVELOPES_OMITTED, text)


def _of_live(live: LiveStatus, is_registered: bool) -> Iterator[Attention]:
    if accusers := [str(each.node_id) for each in live.hosts if each.proved]:
        most = max(each.proved for each in live.hosts)
        text = f"{counted(most, 'proof')} against this node at {', '.join(accusers[:_MOST_NAMED])}"
        more = len(accusers) - _MOST_NAMED
        yield Attention(Reason.ACCUSED, f"{text} and {more} more" if more > 0 else text)
    if live.twin is not None:
        yield Attention(Reason.TWIN_FOUND, f"a twin: {live.twin}")
    if live.certificate_wrong is not None:
        yield Attention(Reason.CERTIFICATE_WRONG, f"certificate: {live.certificate_wrong}")
    if live.clock_wrong is not None:
        yield Attention(Reason.CLOCK_WRONG, f"nothing is originated: {live.clock_wrong}")
    if live.storage_short is not None:
        yield Attention(Reason.STORAGE_SHORT, f"nothing is originated: {live.storage_short}")
    # A node that is not registered has no log of its own yet.
    if live.own_log_waits is not None and is_registered:
        yield Attention(Reason.OWN_LOG_WAITS, f"nothing is originated yet: {live.own_log_waits}")
    if live.late_seconds >= _LATE_SECONDS:
        text = f"its own loop is {live.late_seconds:.1f} s late: it has more to do than it can"
        yield Attention(Reason.OVERLOADED, text)
    if not live.is_ready:
        text = f"not ready: {', '.join(live.failing_checks)}"
        yield Attention(Reason.NOT_READY, text)


def _of_peer(peer: PeerStatus) -> Iterator[Attention]:
    stream = None if peer.live is None else peer.live.stream
    why = "" if stream is None or stream.error is None else _why(peer.node_id, stream.error)
    if peer.state is PeerState.UNREACHABLE:
        text = f"node {peer.node_id} does not answer{why}"
        yield Attention(Reason.PEER_UNREACHABLE, text)
    if peer.state is PeerState.FAILING:
        yield Attention(Reason.PEER_FAILING, f"no stream of node {peer.node_id}{why}")


def _why(node_id: int, error: str) -> str:
    """Return an error behind a sentence that has named the node."""
    reason = error.removeprefix(f"node {node_id}: ")
    return f": {reason}" if len(reason) <= _MOST_WHY else f": {reason[:_MOST_WHY]}…"
