"""Takes the registry's steps between those of the payloads, and delays no payload by them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.backoff import Backoff
from chainkit.contracts.followed import FollowedDeployment, FollowedRegistry
from chainkit.contracts.registry import Registry
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import (
    ChainError,
    ChainkitError,
    ConfigurationError,
    ReorgTooDeep,
    RetryableChainError,
    StoreUnavailable,
    WrongChain,
)
from chainkit.service.log_lines import LogEvent, log_event
from chainkit_indexer.follow.loop import REPEATS_OF_A_DEEP_REORG
from chainkit_indexer.registry.follower import (
    RegistryAdvanced,
    RegistryFollower,
    RegistryRolledBack,
    RegistryStepResult,
)
from chainkit_indexer.storage.store import Store

PAUSE_SECONDS: Final = 2.0
"""Seconds between two reads of the registry's head. The registry changes a few times a year."""

LONGEST_PAUSE_SECONDS: Final = 300.0
"""After failures, the pause doubles up to this."""

TIMEOUT_SECONDS: Final = 5.0
"""The limit for an endpoint of the registry's chain alone: the payloads wait for the answer."""


class RegistryWatch:
    """A callable for use between two steps: mostly it does nothing, and takes one step when due."""

    def __init__(
        self,
        follower: RegistryFollower,
        pool: EndpointPool,
        pause_seconds: float = PAUSE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take endpoints of the registry's chain from ``pool``, which may be the payloads' own."""
        self._follower = follower
        self._pool = pool
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._due = clock()
        self._failures = 0
        self._too_deep = 0
        self._last_said = ""
        self._result: RegistryStepResult | None = None

    @property
    def is_done(self) -> bool:
        """Whether the last step that was tried came to the head of the registry's chain."""
        return self._result is not None and not is_behind(self._result)

    def __call__(self) -> RegistryStepResult | None:
        """Take a step if one is due; None where none is due, or where the step has to be repeated.

        Raises errors that do not pass: StoreError, the pool's error where no endpoint will ever
        answer, and ReorgTooDeep after three times for each endpoint without a step that succeeded.
        """
        if self._clock() < self._due:
            return None
        self._result = result = self._take_step()
        self._failures = self._failures + 1 if result is None else 0
        self._due = self._clock() + self._pause(result)
        return result

    def _pause(self, result: RegistryStepResult | None) -> float:
        if result is None:
            # A registry's endpoint that hangs must not hold the payloads up again and again.
            return Backoff(self._pause_seconds, LONGEST_PAUSE_SECONDS).pause(self._failures)
        return 0 if is_behind(result) else self._pause_seconds

    def _take_step(self) -> RegistryStepResult | None:
        try:
            endpoint = self._pool.choose()
        except RetryableChainError as error:
            self._retry_later(error)
            return None
        try:
            result = self._follower.step(endpoint)
        except ChainError as error:
            if isinstance(error, ReorgTooDeep):
                self._too_deep += 1
                if self._too_deep == REPEATS_OF_A_DEEP_REORG * len(self._pool.endpoints):
                    raise
            self._pool.failed(endpoint, error)
            self._retry_later(error)
            return None
        except StoreUnavailable as error:
            self._retry_later(error)
            return None
        self._too_deep = 0
        self._pool.succeeded(endpoint)
        if text := describe_registry_step(result):
            self._say(logging.INFO, text)
        elif self._last_said.startswith("registry: retrying"):
            self._say(logging.INFO, f"registry: following again at block {result.cursor}")
        return result

    def _retry_later(self, error: ChainkitError) -> None:
        self._say(logging.WARNING, f"registry: retrying: {error}")

    def _say(self, level: int, text: str) -> None:
        if text != self._last_said:
            log_event(LogEvent("registry", text, level=level))
            self._last_said = text


def is_behind(result: RegistryStepResult | None) -> bool:
    """Return whether there is more to read of the registry right after a step."""
    if isinstance(result, RegistryAdvanced):
        return result.cursor.number < result.head.number
    return isinstance(result, RegistryRolledBack)


def watch_registry(
    store: Store, deployment: FollowedDeployment, pool: EndpointPool, registry_urls: Sequence[str]
) -> RegistryWatch | None:
    """Return the callable that follows the deployment's registry between two steps.

    None where the deployment names no registry. ``registry_urls`` are endpoints of the registry's
    chain; without any, the payloads' own ``pool`` is used. Raises ConfigurationError where the pool
    is of another chain, and ChainError where there is no such registry.
    """
    registry = deployment.registry
    if registry is None:
        return None
    is_elsewhere = (registry.chain_id, registry.genesis_hash) != (
        deployment.chain_id,
        deployment.genesis_hash,
    )
    if registry_urls:
        check = partial(check_registry, registry=registry)
        pool = EndpointPool.connect(registry_urls, check, TIMEOUT_SECONDS)
    elif is_elsewhere:
        expected = f"one of chain {registry.chain_id}, where the node registry is"
        raise ConfigurationError("registry's RPC endpoint", expected, "none")
    else:
        pool.first_answer(partial(check_registry, registry=registry), patience_seconds=0)
    return RegistryWatch(RegistryFollower(store, registry), pool)


def check_registry(endpoint: Endpoint, registry: FollowedRegistry) -> None:
    """Prove that an endpoint serves a registry's chain, and that the registry exists there.

    Raises WrongChain with the difference, InconsistentAnswer where the registry lists no nodes.
    """
    chain = FollowedDeployment(registry.chain_id, registry.genesis_hash, (), {})
    head = check_deployment(endpoint, chain).reference
    if not endpoint.code(registry.address, head):
        raise WrongChain(f"registry at 0x{registry.address.hex()}", "a contract", "no code")
    Registry(endpoint, registry.address).nodes(head)


def describe_registry_step(result: RegistryStepResult) -> str:
    """Describe in one line what a step did; empty where a person does not need to know."""
    if isinstance(result, RegistryRolledBack):
        return (
            f"registry: reorg: {result.depth} blocks taken back to {result.cursor}, "
            f"{result.retracted} updates retracted"
        )
    if isinstance(result, RegistryAdvanced) and result.updates:
        plural = "" if result.updates == 1 else "s"
        return f"registry: {result.updates} update{plural} up to block {result.cursor}"
    return ""
