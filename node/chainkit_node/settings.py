"""A node's settings, read once at its start."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.protocol.log_ranges import MOST_ASKED
from chainkit.protocol.methods import MOST_MESSAGE_BYTES


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """How much one stranger may ask for at a time."""

    page: int = 1000
    """Envelopes of one answer, and what limit 0 means, but for identity topics."""
    page_bytes: int = MOST_MESSAGE_BYTES - (1 << 20)
    """Bytes of one answer."""
    frame_bytes: int = 1 << 20
    """Bytes of one frame of a stream, but for a single larger envelope: each slow reader keeps one
    in memory."""
    identity_updates: int = 100_000
    """Envelopes of one answer about identity topics whose limit is 0."""
    topics: int = 10_000
    """Topics or originators of one request."""
    topic_bytes: int = 64
    """Bytes of a topic: a kind byte and an identifier."""
    cursor: int = 1000
    """Entries of one cursor: more than any registry has nodes."""
    publish: int = 1000
    """Payloads of one request."""
    identifiers: int = 1000
    """Identifiers of one GetInboxIds request."""
    ranges: int = MOST_ASKED
    """Ranges of one CompareRanges request."""
    topic_heads: int = 100
    """Topics of one QueryTopicHeads request: the node signs one head for each."""
    payer_reports: int = 100
    """Reports of one QueryPayerReports answer."""
    heartbeat_seconds: float = 15.0
    """After how long a stream without news gets a frame."""


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """How much callers of one class may ask for together and over time; 0 switches a limit off.

    A caller is an address, or a node.
    """

    requests_per_second: int = 1000
    """From one caller, in the long run."""
    request_burst: int = 2000
    """From one caller, at once."""
    streams_of_one: int = 1000
    streams: int = 20_000
    """Open streams of all callers together."""
    filter_bytes_of_one: int = 8 << 20
    """Requests of open streams: their filters stay in memory, at up to twenty times the size."""
    filter_bytes: int = 128 << 20
    """Requests of the open streams of all callers together."""
    calls: int = 2000
    """Calls that are answered at a time, without streams."""
    calls_of_one: int = 1000
    """So that one caller's calls that wait leave places to others."""
    answer_bytes_per_second: int = 64 << 20
    """To one caller."""
    publish_bytes_per_second: int = 2 << 20
    """One caller's requests to publish whose payloads were stored, in the long run."""
    publish_burst_bytes: int = 1 << 30
    """At once."""


@dataclass(frozen=True, slots=True)
class StrangerLimits(CallerLimits):
    """Limits of callers without a token: an IPv4 address or an IPv6 network of 64 bits each."""

    connections: int = 10_000
    """Open connections of all callers, also of nodes: a token comes with a call, not a
    connection."""


@dataclass(frozen=True, slots=True)
class PayerLimits:
    """How much one payer may have stored, wherever its requests come from; 0 for no limit."""

    bytes_per_second: int = 2 << 20
    """Stored payloads, in the long run."""
    burst_bytes: int = 1 << 30
    """At once."""
    allowed: tuple[str, ...] = ()
    """Addresses of the only payers; none where anybody may be one."""


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """When payloads are refused, because the database would fill its disk."""

    free_bytes: int = 512 << 20
    """The least that is left free."""
    database_bytes: int = 0
    """The size that the database may reach: PostgreSQL's disk is on another machine. 0 where only
    the file system bounds the database."""


@dataclass(frozen=True, slots=True)
class NodeLimits(CallerLimits):
    """Limits of other nodes of the registry, beside those of strangers."""

    streams_of_one: int = 100
    """A node needs one of each peer, and a few more in place of peers that are away."""
    streams: int = 5000
