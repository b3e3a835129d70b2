"""The service: steps, the background tasks between them, and the monitor that watches both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.chain import Endpoint
from chainkit.chain.heads import HeadWatcher
from chainkit.errors import ChainkitError
from chainkit_indexer.follow.idle import IdleCheck
from chainkit_indexer.follow.loop import Goal, Observer, StopRequest, run
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.provenance import PageProver
from chainkit_indexer.follow.step import step
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.monitoring.narration import narrate_start
from chainkit_indexer.monitoring.other_chains import OtherChains
from chainkit_indexer.monitoring.registration import RegistrationNarrator
from chainkit_indexer.monitoring.web_socket import WebSocketNarrator
from chainkit_indexer.registry.watch import RegistryWatch, is_behind, watch_registry
from chainkit_indexer.replay.keeper import RawTransactionKeeper
from chainkit_indexer.service.opening import Following
from chainkit_indexer.types import Idle, StepResult
from chainkit_indexer.verification.background import BackgroundProver


@dataclass(frozen=True, slots=True)
class Until:
    """When the service ends for a script; without either field it runs for ever."""

    until_block: int | None = None
    """Height that the cursor must have reached."""
    until_idle: bool = False
    """End when contracts, registry and the heads of all endpoints are reached."""


_FOR_EVER: Final = Until()


def follow_chain(
    follows: Following,
    heads: HeadWatcher,
    registry_urls: Sequence[str],
    stop: StopRequest,
    monitor: Monitor,
    until: Until = _FOR_EVER,
    observers: Sequence[Observer] = (),
) -> None:
    """Follow contracts and registry until the goal is reached or a stop is requested.

    ``registry_urls`` are endpoints of the registry's chain, where that is another one;
    ``observers`` are called with each step before the monitor. Raises errors that a person must
    decide; see ``follow.loop.run``.
    """
    narrate_start(follows.pool.statistics())
    position = follows.store.position()
    others = OtherChains(follows.pool)
    background = BackgroundProver(
        follows.store, follows.settings, follows.pool.others, follows.pool.failed
    )
    sequence_ids = position.sequence_ids if position else {}
    monitor.watch(
        follows.pool, heads, sequence_ids, others.differing, lambda: background.differences
    )
    file = follows.store.file
    # PostgreSQL is on the same disk where all runs on one machine.
    monitor.watch_disk(Path.cwd() if file is None else file.parent)
    settings = follows.settings
    registry = watch_registry(follows.store, settings.deployment, follows.pool, registry_urls)
    idle = IdleCheck(
        follows.pool, settings.deployment.chain_id, lambda: registry is None or registry.is_done
    )
    run(
        _steps(follows),
        follows.pool,
        heads,
        Goal(until.until_block, idle.is_done if until.until_idle else None),
        stop,
        _Observers((*observers, monitor)),
        _background_tasks(follows, registry, heads, others, background),
    )


class _Observers:
    """Several observers as one, each called in this order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def succeeded(self, result: StepResult, seconds: float) -> None:
        for observer in self._observers:
            observer.succeeded(result, seconds)

    def failed(self, error: ChainkitError) -> None:
        for observer in self._observers:
            observer.failed(error)


def _steps(follows: Following) -> Callable[[Endpoint], StepResult]:
    store, settings = follows.store, follows.settings
    prover = PageProver(settings, follows.pool.others)
    reader = PageReader(settings, follows.signer, prefetches=True, prover=prover)
    return lambda endpoint: step(endpoint, store, settings, reader)


def _background_tasks(
    follows: Following,
    watch: RegistryWatch | None,
    heads: HeadWatcher,
    others: OtherChains,
    background: BackgroundProver,
) -> Callable[[Endpoint, StepResult], bool]:
    """Return the work between two steps, which delays no step."""
    web_socket, registration = WebSocketNarrator(heads), RegistrationNarrator(follows.store)
    keeper = RawTransactionKeeper(follows.store, follows.pool.failed)

    def work(endpoint: Endpoint, result: StepResult) -> bool:
        web_socket.look()
        others.look(endpoint, result.cursor)
        if isinstance(result, Idle):
            keeper.keep(endpoint, result.final_block)
            background.prove(endpoint, result.final_block)
        registry = watch() if watch else None
        registration.look(registry)
        return is_behind(registry)

    return work
