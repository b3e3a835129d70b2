"""A node that hosts reports, on a real database, and evidence about another node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from chainkit.contracts.followed import FollowedRegistry
from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.report import Report, liveness_report, parse_unsigned, safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.proto import message_api_pb2
from chainkit.signatures import SigningKey
from chainkit.types import BlockHeader, BlockReference, Node
from chainkit_indexer.registry.history import RegistryHistory, RegistryUpdate
from chainkit_node.peers.directory import Listing
from chainkit_node.reporting.bounds import ReportBounds, Share
from chainkit_node.reporting.metrics import ReportMetrics
from chainkit_node.reporting.writer import ReportWriter
from chainkit_node.storage.reports import StoredReport, read_reports_after
from support import mls, publishes
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import KEY, FakeNode
from support.node_status import HOSTILE

OWN, ACCUSED, OTHER = 100, 200, 300
KEYS = {OWN: KEY, ACCUSED: SigningKey(b"\x05" * 32), OTHER: SigningKey(b"\x06" * 32)}
NOW_NS = mls.SECONDS * 10**9
SECONDS = 60.0
LISTING = Listing(
    {each: Node(each, key.public_key, "", True) for each, key in KEYS.items()},
    OWN,
    BlockReference(1, bytes(32)),
)


def envelope(
    sequence_id: int, text: str = "", node_id: int = ACCUSED, ns: int = NOW_NS, padding: int = 0
) -> bytes:
    """An envelope that a node signed, of a welcome that is valid, with so many bytes more."""
    client = publishes.addressed(publishes.TopicKind.WELCOME, publishes.INSTALLATION_KEY)
    client.welcome_message.v1.installation_key = publishes.INSTALLATION_KEY
    client.welcome_message.v1.data = text.encode() + bytes(padding)
    paid = publishes.paid(client.SerializeToString(), node_id)
    originated = OriginatedEnvelope(node_id, sequence_id, ns, paid)
    return sign_originated(unsigned_originated(originated), KEYS[node_id])


def double(sequence_id: int, node_id: int = ACCUSED, padding: int = 0) -> list[bytes]:
    """Two different envelopes of one sequence id: a proof."""
    texts = ("later", "earlier")
    return [envelope(sequence_id, text, node_id, padding=padding) for text in texts]


def gap(sequence_id: int, node_id: int = ACCUSED, padding: int = 0) -> list[bytes]:
    """An envelope and the one before, between which others are missing: a claim."""
    later = envelope(sequence_id + 2, node_id=node_id, padding=padding)
    return [later, envelope(sequence_id, node_id=node_id)]


def proof(sequence_id: int, node_id: int = ACCUSED, time: int = NOW_NS, padding: int = 0) -> bytes:
    """A client's report with a proof."""
    evidence = double(sequence_id, node_id, padding)
    return safety_report(node_id, Misbehavior.DUPLICATE_SEQUENCE_ID, evidence, time, False)


def claim(sequence_id: int, node_id: int = ACCUSED, time: int = NOW_NS, padding: int = 0) -> bytes:
    """A client's report of a gap."""
    evidence = gap(sequence_id, node_id, padding)
    return safety_report(node_id, Misbehavior.OUT_OF_ORDER, evidence, time, False)


def slow(number: int, node_id: int = ACCUSED, padding: int = 0) -> bytes:
    """A client's report that a query was answered slowly."""
    query = message_api_pb2.EnvelopesQuery(topics=[bytes(padding)])
    request = message_api_pb2.QueryEnvelopesRequest(query=query)
    return liveness_report(
        node_id, Misbehavior.SLOW_NODE, request, 5 * 10**8, NOW_NS + number, is_from_node=False
    )


class Directory:
    """A registry with three nodes."""

    def __init__(self) -> None:
        self.now = LISTING

    def listing(self) -> Listing:
        return self.now


class Host:
    """A node's database and the writer of its reports."""

    def __init__(
        self,
        path: Path | str,
        bounds: ReportBounds | None = None,
        own_delays: Callable[[float], float] = lambda seconds: 0.0,
    ) -> None:
        self.chain = FakeChain()
        self.own_delays = own_delays
        self.indexer = FakeNode(self.chain, path, window_blocks=2)
        self.store = self.indexer.store
        self.bounds = bounds or ReportBounds()
        self.now_ns = NOW_NS
        self.directory = Directory()
        self.registry = CollectorRegistry()
        self.metrics = ReportMetrics(self.registry)
        self.start()

    def start(self) -> None:
        """Begin with nothing in memory but the numbers."""
        self.writer = ReportWriter(
            self.store,
            self.directory,
            KEY,
            self.metrics,
            self.bounds,
            lambda: self.now_ns,
            self.own_delays,
        )

    def restart(self) -> None:
        """Wait until all that was submitted is judged, and begin anew."""
        self.writer.close()
        self.start()

    def close(self) -> None:
        self.writer.close()
        self.store.close()

    def submit(self, *reports: bytes) -> list[BaseException | None]:
        """Submit clients' reports; return what was the matter with each."""
        answers = [self.writer.submit_for_client(report) for report in reports]
        return [answer.exception(SECONDS) for answer in answers]

    def rows(self) -> Sequence[StoredReport]:
        with self.store.reading() as connection:
            return read_reports_after(connection, 0, 10_000, 1 << 30)

    def reports(self) -> list[Report]:
        return [parse_unsigned(row.report) for row in self.rows()]

    def number(self, name: str, **labels: str) -> float:
        """A number of a scrape."""
        return self.registry.get_sample_value(f"chainkit_node_reports_{name}", labels) or 0.0


def small_bounds(**shares: Share) -> ReportBounds:
    """The default bounds, but for shares named such as ``client_claimed``."""
    bounds = ReportBounds()
    changed = {
        (origin, Weight(weight)): share
        for name, share in shares.items()
        for origin, weight in [name.split("_")]
    }
    return replace(bounds, shares={**bounds.shares, **changed})


BLOCK = BlockHeader(9, b"\x09" * 32, b"\x08" * 32, 1)
URLS = {OWN: "https://own.example.org", ACCUSED: HOSTILE, OTHER: "https://other.example.org"}


def register(host: Host, disabled: Sequence[int] = (OTHER,)) -> None:
    """Have the database know a registry with the three nodes."""
    registry = FollowedRegistry(b"\1" * 20, 0, 31337, bytes(32))
    updates = [
        RegistryUpdate(
            Node(each, key.public_key, URLS[each], each not in disabled),
            BLOCK.reference,
            1,
            each,
            b"\7" * 32,
        )
        for each, key in KEYS.items()
    ]
    RegistryHistory(host.store, registry).append([BLOCK], updates, 0)
