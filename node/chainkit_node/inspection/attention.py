"""Reasons for a person to look at a node, found in a snapshot of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.chain import EndpointState
from chainkit.text.counting import counted
from chainkit_node.inspection.snapshot import (
    NO_LIVE,
    ChainEndpoint,
    ChainSide,
    LiveStatus,
    NodeStatus,
    OriginatorKind,
    PeerState,
    PeerStatus,
)
from chainkit_node.inspection.storage_snapshot import StorageStatus
from chainkit_node.inspection.words import amount, duration

_LATE_SECONDS: Final = 1.0
_UNATTESTED_SECONDS: Final = 6 * 60 * 60.0
"""Others are asked every ten minutes: then too few of them answer, or they do not agree."""
_FULL_SECONDS: Final = 14 * 24 * 60 * 60.0
"""As the alarm NodeStorageFills has it."""
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
    STORED_ROWS_DIFFER = "stored_rows_differ"
    CHAINS_DIFFER = "chains_differ"
    NOT_READY = "not_ready"
    ENDPOINT_FAILING = "endpoint_failing"
    UPDATES_WAITING = "updates_waiting"
    PUBLISHES_REFUSED = "publishes_refused"
    PEER_UNREACHABLE = "peer_unreachable"
    PEER_FAILING = "peer_failing"
    ENVELOPES_OMITTED = "envelopes_omitted"
    STORAGE_FILLS = "storage_fills"
    PAYER_REPORT_REFUSED = "payer_report_refused"
    PAYER_REPORT_UNATTESTED = "payer_report_unattested"


PAGES: Final[Mapping[Reason, str]] = {
    Reason.NOT_REGISTERED: "node-not-enabled",
    Reason.DISABLED: "node-not-enabled",
    Reason.ACCUSED: "node-accused",
    Reason.OWN_LOG_FORKED: "node-accused",
    Reason.TWIN_FOUND: "node-twin-found",
    Reason.CLOCK_WRONG: "node-clock-wrong",
    Reason.STORAGE_SHORT: "node-storage-short",
    Reason.OWN_LOG_WAITS: "node-own-log-waits",
    Reason.CERTIFICATE_WRONG: "node-certificate-refused",
    Reason.OVERLOADED: "node-overloaded",
    Reason.STORED_ROWS_DIFFER: "stored-rows-differ",
    Reason.CHAINS_DIFFER: "two-chains",
    Reason.NOT_READY: "not-ready",
    Reason.ENDPOINT_FAILING: "all-endpoints-out",
    Reason.UPDATES_WAITING: "node-updates-waiting",
    Reason.PUBLISHES_REFUSED: "node-refuses-publishes",
    Reason.PEER_UNREACHABLE: "node-peers-unreachable",
    Reason.PEER_FAILING: "node-peers-unreachable",
    Reason.ENVELOPES_OMITTED: "node-gaps-found",
    Reason.STORAGE_FILLS: "node-storage-fills",
    Reason.PAYER_REPORT_REFUSED: "node-payer-report-refused",
    Reason.PAYER_REPORT_UNATTESTED: "node-payer-report-unattested",
}
"""The runbook's page of each reason."""

_PAGES_OF_CHECKS: Final = {
    "loop": "indexer-stopped",
    "head": "head-stale",
    "cursor": "cursor-stale",
    "sequence": "sequence-gap",
    "database": "database-unavailable",
}
_PAGES_OF_ENDPOINTS: Final = {
    EndpointState.QUARANTINED.value: "endpoint-quarantined",
    EndpointState.REFUSED.value: "endpoint-refused",
}
_OWN_REASONS: Final = ("clock", "twin")
"""Checks that have reasons of their own."""
_FAILED_STEPS: Final = ("step", "sequence", "database")
"""Checks that a step's error explains."""
_FAILURES: Final = 3
"""In a row: a single answer that failed needs no attention."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One reason, in words, and the page that says what to do."""

    reason: Reason
    text: str
    page: str
    """Path in the project, such as ``docs/runbook/node-accused.md``."""


def page_path(name: str) -> str:
    """Return the path of a page of the runbook."""
    return f"docs/runbook/{name}.md"


def _found(reason: Reason, text: str, page: str | None = None) -> Attention:
    return Attention(reason, text, page_path(page or PAGES[reason]))


def find_attention(status: NodeStatus) -> tuple[Attention, ...]:
    """Return all reasons, the gravest first; none for a node that is well."""
    found = (
        *_of_registry(status),
        *_of_originators(status),
        *_of_payer_reports(status),
        *_of_storage(status.storage),
        *_of_silence(status),
    )
    live = () if status.live is None else tuple(_of_live(status.live, status.node_id is not None))
    peers = (attention for peer in status.peers for attention in _of_peer(peer))
    order = list(Reason)
    return tuple(sorted((*found, *live, *peers), key=lambda each: order.index(each.reason)))


def _of_registry(status: NodeStatus) -> Iterator[Attention]:
    if status.node_id is None:
        text = "the registry does not list this node's key"
        if status.registry_block is None:
            text = "the registry was not followed yet"
        yield _found(Reason.NOT_REGISTERED, text)
    elif not status.is_enabled:
        yield _found(Reason.DISABLED, "the registry has this node disabled")
    if status.own_proofs:
        proofs = counted(status.own_proofs, "hosted report")
        yield _found(Reason.ACCUSED, f"{proofs} with a proof against this node")


def _of_originators(status: NodeStatus) -> Iterator[Attention]:
    for each in status.originators:
        if each.kind is OriginatorKind.OWN and each.disputed_ids:
            text = f"this node signed two envelopes under {counted(each.disputed_ids, 'id')}"
            yield _found(Reason.OWN_LOG_FORKED, text)
        if each.omitted_ids:
            text = f"originator {each.originator_id} leaves out {counted(each.omitted_ids, 'id')}"
            yield _found(Reason.ENVELOPES_OMITTED, text)


def _of_payer_reports(status: NodeStatus) -> Iterator[Attention]:
    for each in status.refused_payer_reports:
        reports = counted(each.count, "payer report")
        ids = f"ids {each.first_id} to {each.last_id}"
        text = f"{reports} of node {each.originator_id} refused, the last one of {ids}"
        yield _found(Reason.PAYER_REPORT_REFUSED, f"{text}: {each.reason}")
    waits = status.unattested_payer_report
    if waits is not None and waits.seconds >= _UNATTESTED_SECONDS:
        ids = f"ids {waits.first_id} to {waits.last_id}"
        text = f"for {duration(waits.seconds)} too few nodes have signed its payer report of {ids}"
        yield _found(Reason.PAYER_REPORT_UNATTESTED, text)


def _of_storage(storage: StorageStatus | None) -> Iterator[Attention]:
    if storage is None or storage.seconds_left is None or storage.growth_bytes is None:
        return
    if storage.seconds_left < _FULL_SECONDS:
        left, growth = duration(storage.seconds_left), amount(storage.growth_bytes)
        text = f"in {left} the database has no room for publishes: it grows by {growth} a day"
        yield _found(Reason.STORAGE_FILLS, text)


def _of_live(live: LiveStatus, is_registered: bool) -> Iterator[Attention]:
    if accusers := [str(each.node_id) for each in live.hosts if each.proved]:
        most = max(each.proved for each in live.hosts)
        text = f"{counted(most, 'proof')} against this node at {', '.join(accusers[:_MOST_NAMED])}"
        more = len(accusers) - _MOST_NAMED
        yield _found(Reason.ACCUSED, f"{text} and {more} more" if more > 0 else text)
    if live.twin is not None:
        yield _found(Reason.TWIN_FOUND, f"a twin: {live.twin}")
    if live.certificate_wrong is not None:
        text = f"certificate: {live.certificate_wrong}"
        page = "node-certificate-ends" if live.certificate_seconds_left else None
        yield _found(Reason.CERTIFICATE_WRONG, text, page)
    if live.clock_wrong is not None:
        yield _found(Reason.CLOCK_WRONG, f"nothing is originated: {live.clock_wrong}")
    if live.storage_short is not None:
        yield _found(Reason.STORAGE_SHORT, f"nothing is originated: {live.storage_short}")
    # A node that is not registered has no log of its own yet.
    if live.own_log_waits is not None and is_registered:
        yield _found(Reason.OWN_LOG_WAITS, f"nothing is originated yet: {live.own_log_waits}")
    if live.late_seconds >= _LATE_SECONDS:
        text = f"its own loop is {live.late_seconds:.1f} s late: it has more to do than it can"
        yield _found(Reason.OVERLOADED, text)
    yield from _of_checks(live)
    yield from _of_chain(live.chain)
    if live.publish_refused is not None:
        yield _found(Reason.PUBLISHES_REFUSED, f"a publish was refused: {live.publish_refused}")


def _of_silence(status: NodeStatus) -> Iterator[Attention]:
    if status.live is None and status.no_live != NO_LIVE:
        yield _found(Reason.OVERLOADED, f"the node gives no answer: {status.no_live}")


def _of_checks(live: LiveStatus) -> Iterator[Attention]:
    for each in live.failing_checks:
        if each.name in _OWN_REASONS:
            continue
        text = f"not ready: {each.name}: {each.why}"
        if each.name in _FAILED_STEPS and live.chain.error is not None:
            text = f"{text}: {live.chain.error}"
        yield _found(Reason.NOT_READY, text, _PAGES_OF_CHECKS.get(each.name))


def _of_chain(chain: ChainSide) -> Iterator[Attention]:
    if chain.stored_differences:
        rows = counted(chain.stored_differences, "stored row")
        yield _found(Reason.STORED_ROWS_DIFFER, f"the chain contradicts {rows}")
    if chain.updates_waiting:
        updates = counted(chain.updates_waiting, "identity update")
        text = f"{updates} waiting for the chain of a contract wallet, and all behind"
        yield _found(Reason.UPDATES_WAITING, text)
    for each in chain.endpoints:
        if each.differs:
            yield _found(Reason.CHAINS_DIFFER, f"endpoint {each.name} shows another chain")
        yield from _of_endpoint(each)


def _of_endpoint(each: ChainEndpoint) -> Iterator[Attention]:
    page = _PAGES_OF_ENDPOINTS.get(each.state)
    if page is not None or each.failures >= _FAILURES:
        why = "" if each.error is None else f": {each.error}"
        yield _found(Reason.ENDPOINT_FAILING, f"endpoint {each.name} is {each.state}{why}", page)


def _of_peer(peer: PeerStatus) -> Iterator[Attention]:
    stream = None if peer.live is None else peer.live.stream
    why = "" if stream is None or stream.error is None else _why(peer.node_id, stream.error)
    if peer.state is PeerState.UNREACHABLE:
        text = f"node {peer.node_id} does not answer{why}"
        yield _found(Reason.PEER_UNREACHABLE, text)
    if peer.state is PeerState.FAILING:
        yield _found(Reason.PEER_FAILING, f"no stream of node {peer.node_id}{why}")


def _why(node_id: int, error: str) -> str:
    """Return an error behind a sentence that has named the node."""
    reason = error.removeprefix(f"node {node_id}: ")
    return f": {reason}" if len(reason) <= _MOST_WHY else f": {reason[:_MOST_WHY]}…"
