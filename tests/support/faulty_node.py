"""A node's status as its monitor answers it: a real database, and real checks of a node's doubts.

Streams of peers, and the loop's lag, are what a test says.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from chainkit.chain import Endpoint, EndpointPool
from chainkit.service.certificate import CertificateFiles
from chainkit.types import NANOSECONDS_PER_SECOND, BlockReference, Node
from chainkit_indexer.follow.loop import StopRequest
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_node.inspection.chain_view import ChainView
from chainkit_node.inspection.live import Checks, LiveView, RecentRepairs
from chainkit_node.inspection.page import StatusPage
from chainkit_node.originating.clock_check import ClockCheck
from chainkit_node.originating.last_refusal import LastRefusal
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.originating.twin import TwinCheck
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.replicating.plan import Subscription
from chainkit_node.replicating.replicator import StreamState
from chainkit_node.settings import StorageLimits
from chainkit_node.watching.about_self import Hosted
from chainkit_node.watching.own_certificate import OwnCertificate
from support.indexer.loop_results import idle
from support.network.certificates import Authority, make_authority
from support.network.held_logs import Ignored
from support.network.originator import Originator
from support.reporting import ACCUSED, KEYS, OWN, Host

NAME = "node.example"
URL = f"https://{NAME}:5051"
LISTING = Listing({OWN: Node(OWN, b"", URL, True)}, OWN, BlockReference(1, bytes(32)))
AUTHORITY = make_authority()
LIMITS = ReadyLimits(lag_blocks=10)


def _well() -> None:
    """An own log that is known."""


@dataclass
class FaultyNode:
    """A node that is well until a test breaks a part."""

    host: Host
    folder: Path
    loop: asyncio.AbstractEventLoop
    limits: ReadyLimits = LIMITS
    now: float = field(default_factory=time.time)
    last_own_ns: int = 0
    free: int = 1 << 40
    late_seconds: float = 0.0
    updates_waiting: int = 0
    own_log: Any = _well
    streams: dict[Subscription, StreamState] = field(default_factory=dict)
    unreachable: set[int] = field(default_factory=set)
    hosted: dict[int, Hosted] = field(default_factory=dict)
    refusals: LastRefusal = field(default_factory=LastRefusal)

    def __post_init__(self) -> None:
        self.monitor = Monitor(StopRequest(), limits=self.limits)
        self.pool = EndpointPool([Endpoint.connect(f"http://{each}") for each in ("one", "two")])
        self.monitor.succeeded(idle(10), 0.1)
        self.clock = ClockCheck(lambda: self.last_own_ns, clock=lambda: self.now)
        self.twin = TwinCheck(lambda: OWN, time.time_ns, time.monotonic)
        self.space = StorageSpace(lambda _: self.free, StorageLimits())
        self.certificate = self.certified(AUTHORITY)
        self.peer(ACCUSED, StreamState(True, None, 7, 0.0))

    def watches(self, differing: dict[str, bool], stored_differences: int = 0) -> None:
        """Take what the indexer found beside its steps."""
        heads = cast(Any, SimpleNamespace(statistics=None))
        self.monitor.watch(self.pool, heads, {}, lambda: differing, lambda: stored_differences)

    def certified(self, authority: Authority, name: str = NAME, days: float = 90) -> OwnCertificate:
        """Have the node serve a certificate, and check it."""
        files = CertificateFiles(self.folder / "certificate.pem", self.folder / "key.pem")
        for path, content in zip(
            (files.certificate, files.key), authority.issue(name, days=days), strict=True
        ):
            path.write_bytes(content)
        self.certificate = OwnCertificate(files, lambda: LISTING)
        self.certificate.look()
        return self.certificate

    def peer(self, node_id: int, state: StreamState) -> None:
        """Have the stream of a peer be so."""
        self.streams[Subscription(node_id, node_id)] = state

    def take(self, node_id: int, *envelopes: bytes) -> None:
        """Store envelopes of a node, as its stream brought them."""
        intake = Intake(
            self.host.store,
            Ignored(),
            lambda: int(self.now * NANOSECONDS_PER_SECOND),
            lambda new, late: None,
            lambda _: None,
            UngivenIds(lambda: None, lambda: True),
        )
        key = KEYS[node_id].public_key
        intake.take(list(envelopes), Source(node_id, key, is_direct=True))

    def page(self) -> StatusPage:
        """Return the node's page."""
        return StatusPage(self.host.store, self._view(), lambda: self.now)

    def _view(self) -> LiveView:
        replicator = SimpleNamespace(
            streams=lambda: self.streams,
            silent_seconds=lambda: dict.fromkeys(self.unreachable, 61.0),
            unreachable=lambda: frozenset(self.unreachable),
            open_streams=lambda: 1,
        )
        repairer = SimpleNamespace(comparisons=dict, highest=dict)
        parts: tuple[Any, ...] = (
            replicator,
            repairer,
            SimpleNamespace(check=lambda: self.own_log()),
            SimpleNamespace(hosted=lambda: self.hosted),
        )
        return LiveView(
            self.loop,
            *parts,
            Checks(self.clock, self.twin, self.certificate, self.space, self.refusals),
            cast(Any, SimpleNamespace(seconds=lambda: self.late_seconds)),
            cast(Any, range(0)),
            int,
            RecentRepairs(time.monotonic),
            ChainView(self.pool, self.monitor, lambda: self.updates_waiting),
            time.monotonic,
            time.monotonic(),
        )


def own_envelopes(count: int) -> list[bytes]:
    """Envelopes that the node itself signed."""
    return Originator(OWN, KEYS[OWN]).log(count)


def peers_envelopes(count: int, node_id: int = ACCUSED) -> list[bytes]:
    """Envelopes of another node."""
    return Originator(node_id, KEYS[node_id]).log(count)


@contextmanager
def faulty_node(folder: Path, **options: Any) -> Iterator[FaultyNode]:
    """A node on a database of its own, with an event loop that runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with closing(Host(folder / "node.db")) as host:
            yield FaultyNode(host, folder, loop, **options)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
