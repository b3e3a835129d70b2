"""A pool of endpoints whose clock is the test's: nobody waits for an endpoint's rest to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from chainkit.chain import Endpoint
from chainkit.chain.pool import EndpointPool, NoEndpointAvailable
from chainkit.errors import ChainError
from chainkit_indexer.types import StepResult
from support.endpoints.endpoints import impatient_endpoint


class RestlessPool:
    """Takes steps through an EndpointPool as the loop of `chainkit index run` does."""

    def __init__(self, urls: Sequence[str], check: Callable[[Endpoint], object]) -> None:
        self.seconds = 0.0
        self.errors: list[ChainError] = []
        self._endpoints = [impatient_endpoint(url) for url in urls]
        self.pool = EndpointPool(
            self._endpoints,
            check,
            clock=lambda: self.seconds,
            random=Random(0).random,
            in_background=lambda job: job(),
        )

    def step(self, take_step: Callable[[Endpoint], StepResult]) -> StepResult | None:
        """Take a step at the endpoint that the pool chooses; None if it raised or none was due."""
        try:
            endpoint = self.pool.choose()
        except NoEndpointAvailable:
            self.seconds += self.pool.seconds_until_available()
            return None
        # Work takes time: rests end also while another endpoint is used.
        self.seconds += 0.1
        try:
            result = take_step(endpoint)
        except ChainError as error:
            self.errors.append(error)
            self.pool.failed(endpoint, error)
            return None
        self.pool.succeeded(endpoint)
        return result

    def errors_of(self, number: int) -> Mapping[str, int]:
        """The errors that the pool counted against one of its endpoints."""
        return self.pool.statistics()[number].errors
