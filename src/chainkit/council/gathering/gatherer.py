"""Asks all nodes at once, each for its share of the time, and keeps a result for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from chainkit.chain.backoff import Backoff
from chainkit.council.gathering.folder import ReportFolder
from chainkit.council.gathering.node_answers import HostedReport, NodePages, Share
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    RateLimited,
)
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import Node

ATTEMPTS: Final = 4
"""Attempts for one page before the node counts as away."""

_PAUSES: Final = Backoff(first_seconds=0.5, longest_seconds=8.0, jitter=0.5)

Ask: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Sends a QueryMisbehaviorReportsRequest and returns the answer; raises ChainError."""

Connect: TypeAlias = Callable[[str], AbstractAsyncContextManager[Ask]]
"""Opens the way to a URL for one gathering; raises ConfigurationError for no URL of a node."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""


@dataclass(frozen=True, slots=True)
class Host:
    """A registered node, and the URL at which it is asked."""

    node: Node
    url: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A report without its evidence, which is in the folder."""

    accused_id: int
    misbehavior: Misbehavior
    is_from_node: bool
    """Whether the host states that it saw this failure itself, and did not only store a client's
    report."""


@dataclass(slots=True)
class Gathered:
    """The answers of one node."""

    host: Host
    pages: NodePages
    new: int = 0
    """Reports that were not in the folder yet."""
    fault: str | None = None
    """Why the node's reports are not all here; None where the node answered that it has no more."""
    listed: dict[bytes, Listed] = field(default_factory=dict)
    """The node's reports, by the digest that the node signed."""

    @property
    def is_complete(self) -> bool:
        """Whether the node answered to the end, and nothing but reports that it signed."""
        return self.fault is None and not (self.pages.wrong_key or self.pages.malformed)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Asks nodes, and keeps the reports that they signed."""

    folder: ReportFolder
    connect: Connect
    share: Share
    """The most that each node may answer."""
    after_ns: int = 0
    """Only reports that nodes stored after this time, by their own clocks, in nanoseconds since
    1970."""
    sleep: Sleep = asyncio.sleep

    async def gather(
        self, hosts: Sequence[Host], report: Callable[[Gathered], None] = lambda result: None
    ) -> list[Gathered]:
        """Ask all nodes at once; ``report`` is called with each result when the node is done.

        A node's fault affects only its own result. Raises ConfigurationError where the folder takes
        no more.
        """

        async def one(host: Host) -> Gathered:
            result = await self._ask(host)
            report(result)
            return result

        return list(await asyncio.gather(*map(one, hosts)))

    async def _ask(self, host: Host) -> Gathered:
        pages = NodePages(host.node.node_id, host.node.signing_key, self.after_ns, self.share)
        result = Gathered(host, pages)
        try:
            way = self.connect(host.url)
        except ConfigurationError as error:
            result.fault = str(error)
            return result
        try:
            async with asyncio.timeout(self.share.seconds), way as ask:
                while (request := pages.request()) is not None:
                    self._keep(result, pages.take(await self._answer(ask, request)))
            result.fault = pages.cut
        except TimeoutError:
            result.fault = f"not done after {self.share.seconds:g} s"
        except ChainError as error:
            result.fault = str(error)
        return result

    async def _answer(self, ask: Ask, request: bytes) -> bytes:
        """Ask for one page, again after a pause where the node is busy or away."""
        for attempt in range(ATTEMPTS - 1):
            try:
                return await ask(request)
            except (EndpointUnavailable, RateLimited):
                await self.sleep(_PAUSES.pause(attempt))
        return await ask(request)

    def _keep(self, result: Gathered, reports: Sequence[HostedReport]) -> None:
        for report in reports:
            result.new += self.folder.keep(report)
            said = report.signed.report
            result.listed[report.signed.digest] = Listed(
                said.node_id, said.misbehavior, said.is_from_node
            )
