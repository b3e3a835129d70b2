"""A pool of endpoints with the test's own clock, random numbers and checks."""

from __future__ import annotations

from collections.abc import Callable

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.member import EndpointStatus
from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    WrongChain,
)
from support.endpoints.fake_endpoint import FakeProvider

WRONG_CHAIN = WrongChain("chain id at a", 1, 2)
NO_ACCESS = AccessRefused("a", "HTTP 200", "HTTP 403")


def endpoint(name: str) -> Endpoint:
    return Endpoint(FakeProvider({"eth_chainId": "0x1"}), name)


def down() -> EndpointUnavailable:
    return EndpointUnavailable("a", "an answer", "a time-out")


def contradiction(subject: str = "log at a") -> InconsistentAnswer:
    return InconsistentAnswer(subject, "one", "another")


def limited(retry_after: float | None = None) -> RateLimited:
    error = RateLimited("a", "an answer", "HTTP 429")
    error.retry_after = retry_after
    return error


class ClockedPool:
    """A pool on a clock of its own, without chance, whose checks fail as told."""

    def __init__(self, *names: str, draw: float = 1.0) -> None:
        self.now = 1000.0
        self.endpoints = [endpoint(name) for name in names]
        self.checked: list[str] = []
        self.faults: dict[str, ChainError] = {}
        self.jobs: list[Callable[[], None]] = []
        self.pool = EndpointPool(
            self.endpoints,
            self._check,
            clock=lambda: self.now,
            random=lambda: draw,
            in_background=self.jobs.append,
        )

    def _check(self, endpoint: Endpoint) -> None:
        self.checked.append(endpoint.name)
        if error := self.faults.get(endpoint.name):
            raise error

    def choose(self) -> str:
        return self.pool.choose().name

    def fail(self, error: ChainError, name: str = "a", times: int = 1) -> None:
        for _ in range(times):
            self.pool.failed(self._of(name), error)

    def succeed(self, name: str = "a") -> None:
        self.pool.succeeded(self._of(name))

    def _of(self, name: str) -> Endpoint:
        return next(each for each in self.endpoints if each.name == name)

    def status(self, name: str = "a") -> EndpointStatus:
        return next(each for each in self.pool.statistics() if each.name == name)

    def rest(self, name: str = "a") -> float:
        until = self.status(name).until
        return 0 if until is None else until - self.now
