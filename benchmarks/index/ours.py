"""The indexer as `chainkit index run` puts it together, without its log and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.index.job import Job, Measured
from benchmarks.index.meter import Meter
from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.heads import HeadWatcher
from chainkit.contracts.followed import FollowedDeployment, read_followed_deployment
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import ChainkitError
from chainkit.signatures import SigningKey
from chainkit.types import BlockHeader, Log, message_sent
from chainkit_indexer.config import DEFAULT_POLL_SECONDS, IndexerSettings
from chainkit_indexer.follow.loop import Goal, Observer, StopRequest, collect_garbage_seldom, run
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.provenance import Established, PageProver
from chainkit_indexer.follow.signing import Signer, SignerProcess
from chainkit_indexer.follow.step import step
from chainkit_indexer.registry.watch import is_behind, watch_registry
from chainkit_indexer.replay.keeper import RawTransactionKeeper
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Advanced, Idle, PlacedEvent, Provenance, StepResult

KEY: Final = SigningKey(bytes([7]) * 32)
_NO_LOG: Final = Log(bytes(20), (), b"", 0, bytes(32), bytes(32), 0, 0)
_WARM_UP: Final = [PlacedEvent(message_sent(bytes(32), b"", 1), _NO_LOG, 0)] * 1_000


@dataclass(frozen=True, slots=True)
class Indexer:
    """The opened parts that a step needs."""

    deployment: FollowedDeployment
    pool: EndpointPool
    store: Store
    take_step: Callable[[Endpoint], StepResult]


@contextmanager
def indexer(
    job: Job,
    make_signer: Callable[[], Signer],
    make_prover: Callable[[IndexerSettings], PageProver] = PageProver,
) -> Iterator[Indexer]:
    """Open everything, with a signer that is warm."""
    deployment = read_followed_deployment(job.record_path)
    pool = EndpointPool.connect([job.url], lambda each: check_deployment(each, deployment))
    settings = IndexerSettings(deployment)
    store = Store.open(job.database, Identity.of(deployment, KEY.public_key))
    signer = make_signer()
    reader = PageReader(settings, signer, prefetches=True, prover=make_prover(settings))
    try:
        signer.sign(_WARM_UP)()
        collect_garbage_seldom()
        yield Indexer(
            deployment,
            pool,
            store,
            lambda endpoint: step(endpoint, store, settings, reader),
        )
    finally:
        signer.close()
        store.close()


def node_signer() -> SignerProcess:
    """Start the signer as `chainkit index run` does."""
    return SignerProcess(KEY)


class NoProof(PageProver):
    """Takes each page as one endpoint gave it: what the proof costs is the difference."""

    def establish(
        self, endpoint: Endpoint, headers: Sequence[BlockHeader], logs: Sequence[Log], deep: bool
    ) -> Established:
        """Return how little is known."""
        return Established(Provenance.ONE_ENDPOINT, len(headers))


class _Counter:
    """Tells the meter of each page."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def succeeded(self, result: StepResult, seconds: float) -> None:
        if isinstance(result, Advanced):
            self._meter.count(result.envelopes)

    def failed(self, error: ChainkitError) -> None:
        raise error


def catch_up(
    job: Job,
    make_signer: Callable[[], Signer],
    make_prover: Callable[[IndexerSettings], PageProver] = PageProver,
) -> Measured:
    """Index a stretch of history into an empty database."""
    with indexer(job, make_signer, make_prover) as opened, HeadWatcher(None, 0.25) as heads:
        meter = Meter(job.stretch.events)
        goal = Goal(until_block=job.stretch.last_block)
        run(opened.take_step, opened.pool, heads, goal, StopRequest(), _Counter(meter))
        return meter.finish()


def follow(job: Job, observer: Observer) -> None:
    """Follow the chain until SIGTERM, with the background tasks of the command."""
    stop = StopRequest()
    stop.listen()
    with (
        indexer(job, node_signer) as opened,
        HeadWatcher(job.websocket, DEFAULT_POLL_SECONDS) as heads,
    ):
        background_tasks = _background_tasks(opened)
        run(opened.take_step, opened.pool, heads, Goal(), stop, observer, background_tasks)


def _background_tasks(opened: Indexer) -> Callable[[Endpoint, StepResult], bool]:
    keeper = RawTransactionKeeper(opened.store, opened.pool.failed)
    watch = watch_registry(opened.store, opened.deployment, opened.pool, ())

    def work(endpoint: Endpoint, result: StepResult) -> bool:
        if isinstance(result, Idle):
            keeper.keep(endpoint, result.final_block)
        return is_behind(watch() if watch else None)

    return work
