"""One moment of a node: everything that its operator looks at, typed and bounded.

Strings of strangers, such as URLs and errors, are made printable when the snapshot is built, so no
form of it checks these strings. Lists have a bound; a number beside them says how many were left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit_node.inspection.storage_snapshot import StorageStatus

FORMAT: Final = 4
"""Number of the JSON's form: another number is another form."""

MOST_ROWS: Final = 500
"""Originators, and peers, of one snapshot."""
MOST_RANGES: Final = 5
"""Open gaps that are listed of one originator."""
MOST_REPORTS: Final = 10
"""Reports that are listed with their evidence."""
MOST_REPAIRS: Final = 10
MOST_TEXT: Final = 300
"""Characters of a stranger's text."""

NO_LIVE: Final = "read from the database alone; --url asks a running node"
"""Why a snapshot of a database has no live parts."""


class OriginatorKind(StrEnum):
    """The kind of node that signs the envelopes."""

    CHAIN = "chain"
    OWN = "own"
    PEER = "peer"
    UNREGISTERED = "unregistered"
    """The registry, as it was followed, has no such node."""


class PeerState(StrEnum):
    """How the stream of a peer's own envelopes is doing."""

    OPEN = "open"
    OPENING = "opening"
    """The stream's headers have not come yet."""
    FAILING = "failing"
    """The peer answers with an error, or with what its originator did not sign."""
    UNREACHABLE = "unreachable"
    """The peer has not answered for 4 seconds or more; other nodes are asked in its place."""
    DISABLED = "disabled"
    """The registry lists the peer as disabled: the peer is not asked."""
    UNKNOWN = "unknown"
    """No running node was asked."""


@dataclass(frozen=True, slots=True)
class GapRange:
    """Sequence ids that are missing, both ends included."""

    first_id: int
    last_id: int
    state: str
    """``asked`` or ``omitted``: see ``GapState``."""


@dataclass(frozen=True, slots=True)
class OriginatorStatus:
    """An originator's log as this node holds it."""

    originator_id: int
    kind: OriginatorKind
    held_id: int
    """Highest sequence id, 0 before the first."""
    age_seconds: float | None
    """Since the time of the last envelope; None before the first."""
    highest_id: int | None
    """The highest id as the originator last answered; None without an answer, as for the chain."""
    lag: int | None
    """``highest_id`` less ``held_id``; None where ``highest_id`` is not known."""
    missing_ids: int
    """Ids that other nodes are asked for, in ``open_gaps`` ranges."""
    omitted_ids: int
    """Missing ids that cannot have expired: the originator owes these envelopes."""
    expired_ids: int
    repaired_ids: int
    """Ids that were missing and came later, as far as is remembered."""
    open_gaps: int
    ranges: tuple[GapRange, ...]
    """The first MOST_RANGES open ones."""
    disputed_ids: int
    """Ids under which the originator signed two envelopes."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The stream of a peer's own envelopes."""

    is_open: bool
    since_seconds: float
    """For how long the stream has been open, or has failed; else since its begin or end."""
    received: int
    """New envelopes since the node's start."""
    error: str | None
    """Why the stream is not open."""


@dataclass(frozen=True, slots=True)
class ComparisonStatus:
    """The last comparison of logs with a peer."""

    seconds_ago: float
    logs: int
    """How many logs were to be compared."""
    error: str | None
    """Why the comparison failed; None where it succeeded."""


@dataclass(frozen=True, slots=True)
class PeerLive:
    """A peer as the running node knows it."""

    stream: StreamStatus | None
    """None where no stream is kept."""
    silent_seconds: float
    """For how long the peer has not answered; 0 where it has."""
    is_unreachable: bool
    substitutes: tuple[int, ...]
    """Nodes that are asked for the peer's envelopes in its place."""
    comparison: ComparisonStatus | None
    """None before the first comparison."""


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """Another node of the registry."""

    node_id: int
    url: str
    is_enabled: bool
    state: PeerState
    state_seconds: float | None
    """For how long the peer has been in the state; None where no stream is kept."""
    live: PeerLive | None
    """None where no running node was asked."""


@dataclass(frozen=True, slots=True)
class BlockStatus:
    """A block."""

    number: int
    hash: str
    """0x and 64 hex digits."""


@dataclass(frozen=True, slots=True)
class ReorgStatus:
    """A reorg of the chain, or a rewind that the operator asked for."""

    reorg_id: int
    ancestor: BlockStatus
    depth: int
    """Blocks that were taken back."""
    rewound_to: int | None
    """The height of a rewind; None for a reorg."""
    kept: int
    moved: int
    dropped: int


@dataclass(frozen=True, slots=True)
class ReportTally:
    """How many reports of one kind are hosted."""

    node_id: int
    """The accused."""
    misbehavior: str
    weight: str
    """``proved`` or ``claimed``."""
    origin: str
    """``node`` where this node saw the failure itself, ``client`` where a client reported it."""
    count: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """An envelope that a report shows."""

    originator_id: int
    sequence_id: int
    digest: str
    """0x and 64 hex digits: what the originator signed, or the transaction of the chain's."""


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """A hosted report."""

    server_time_ns: int
    """Nanoseconds since 1970."""
    node_id: int
    """The accused."""
    misbehavior: str
    weight: str
    origin: str
    evidence: tuple[Evidence, ...]
    """Empty for a liveness failure, and for a report that is too large to look into here."""
    response_seconds: float | None
    """Seconds that an answer took; None for a safety failure."""
    bytes: int
    """Length of the report."""
    times: int = 1
    """How many of the newest reports say the same; the other fields are those of the last one."""


@dataclass(frozen=True, slots=True)
class RefusedPayerReports:
    """The payer reports of another node that this node refused within a week."""

    originator_id: int
    count: int
    first_id: int
    """The newest one's range, both ends included."""
    last_id: int
    reason: str
    """Why the newest one was refused."""


@dataclass(frozen=True, slots=True)
class UnattestedPayerReport:
    """The oldest payer report of this node that too few nodes have signed."""

    first_id: int
    last_id: int
    seconds: float
    """Since the report was stored."""


@dataclass(frozen=True, slots=True)
class RepairStatus:
    """A comparison that brought envelopes."""

    seconds_ago: float
    peer_id: int
    originator_id: int
    missing: int
    """Envelopes that this node lacked."""
    differing: int
    """Envelopes whose ids this node holds with other contents."""
    times: int
    """How often it was so; the other fields are those of the last one."""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The reports about this node that another node hosts."""

    node_id: int
    """The host."""
    proved: int
    """Failures whose evidence this node itself judged as a proof."""
    claimed: int
    """Reports that prove nothing."""


@dataclass(frozen=True, slots=True)
class FailingCheck:
    """A check of ``/readyz`` that fails."""

    name: str
    why: str
    """Its value and its limit."""


@dataclass(frozen=True, slots=True)
class ChainEndpoint:
    """An endpoint of the chain."""

    name: str
    state: str
    """``available``, ``cooling``, ``quarantined`` or ``refused``."""
    failures: int
    """Since it last answered."""
    error: str | None
    """Why it failed last; None where it has answered since."""
    differs: bool
    """Whether it shows another chain than the one that is followed."""


@dataclass(frozen=True, slots=True)
class ChainSide:
    """How the running node follows the chain."""

    error: str | None
    """Why the last step failed; None where it succeeded."""
    endpoints: tuple[ChainEndpoint, ...]
    """In the operator's order."""
    stored_differences: int
    """Stored rows that the proof of older blocks found to differ from the chain."""
    updates_waiting: int
    """Originators whose next identity update waits for a chain's answer."""


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """The parts that only a running node knows."""

    uptime_seconds: float
    is_ready: bool
    failing_checks: tuple[FailingCheck, ...]
    blocks_to_go: int | None
    """Blocks behind the chain's head; None before the first step."""
    chain: ChainSide
    own_log_waits: str | None
    """Why nothing is originated yet; None once the own log is known."""
    clock_wrong: str | None
    """Why the clock lets nothing be originated; None for a clock that nobody contradicts."""
    storage_short: str | None
    """Why too little free space lets nothing be published; None where there is enough."""
    twin: str | None
    """The sign that another process has this node's key; None where there is none."""
    certificate_wrong: str | None
    """Why others refuse this node's certificate, or soon will; None for one that is well, or no
    TLS."""
    certificate_seconds_left: float
    """For how long others take the certificate: 0 where they refuse it, or there is none."""
    publish_refused: str | None
    """Why a publish was refused as UNAVAILABLE lately; None where one was stored since."""
    late_seconds: float
    """How late the event loop is."""
    reader_streams: int
    """Open streams of readers that are no nodes."""
    node_streams: int
    """Open streams of other nodes that read here."""
    peer_streams: int
    """Open streams of this node, of other nodes' envelopes."""
    repairs: tuple[RepairStatus, ...]
    """The last MOST_REPAIRS that differ, the newest first."""
    hosts: tuple[HostStatus, ...]
    """Nodes that host reports about this one, as far as these were read, the first MOST_ROWS."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node at one moment."""

    taken_at: float
    """Seconds since 1970."""
    version: str
    """The version of chainkit."""
    chain_id: int
    public_key: str
    """0x and 130 hex digits."""
    node_id: int | None
    """None where the registry does not list the key."""
    is_enabled: bool
    registry_block: BlockStatus | None
    """The block as of which the registry is known; None before it was followed."""
    cursor: BlockStatus | None
    """Up to where the chain was followed; None before the first page."""
    final_block: int | None
    originators: tuple[OriginatorStatus, ...]
    """By id."""
    peers: tuple[PeerStatus, ...]
    """By id."""
    left_out: int
    """Originators and peers beyond MOST_ROWS."""
    reorg_count: int
    reorgs: tuple[ReorgStatus, ...]
    """The newest ones, the newest first."""
    tallies: tuple[ReportTally, ...]
    reports: tuple[ReportSummary, ...]
    """The newest ones, the newest first."""
    refused_payer_reports: tuple[RefusedPayerReports, ...]
    """By originator, the first MOST_ROWS."""
    unattested_payer_report: UnattestedPayerReport | None
    storage: StorageStatus | None
    """None before the node's first look."""
    own_proofs: int
    """Proofs against this node itself."""
    own_claims: int
    """Claims against this node itself, which prove nothing."""
    live: LiveStatus | None
    no_live: str | None
    """Why ``live`` is None."""
