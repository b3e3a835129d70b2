"""Several endpoints of one chain, none of them reliable: chooses the next one, and lets some rest.

All waiting is done by the caller of ``choose``: the endpoints of a pool try once. A piece of work
asks one endpoint only, and then reports with ``succeeded`` or ``failed``.
"""

from __future__ import annotations

import copy
import random as random_numbers
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, Self, TypeVar

from chainkit.chain.client import RetryPolicy
from chainkit.chain.endpoint import Endpoint
from chainkit.chain.member import SHORTEST_PAUSE_SECONDS, EndpointStatus, Member
from chainkit.chain.transport import LONGEST_ANSWER_BYTES
from chainkit.errors import (
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    WrongChain,
)

Answer = TypeVar("Answer")

PATIENCE_SECONDS: Final = 20.0
"""How long work that is done once is tried at one endpoint after the other."""

STANDSTILL_SECONDS: Final = 10.0
"""Without a new head, before another endpoint is asked whether there is one."""

_NUMBER: Final = " #"
"""Between the host and the number of one of several endpoints there."""

_ONE_ATTEMPT: Final = RetryPolicy(attempts=1)


class NoEndpointAvailable(EndpointUnavailable):
    """Every endpoint rests; one may be asked again in ``retry_after`` seconds."""

    retry_after: float = 0.0


def _in_background(job: Callable[[], None]) -> None:
    threading.Thread(target=job, name="endpoint check", daemon=True).start()


class EndpointPool:
    """Asks the endpoint that the operator prefers, and others while it rests. Thread-safe.

    An endpoint that failed and has rested is checked in the background while another endpoint is in
    use. Once it passes, it is used again if the operator's order prefers it to the other endpoint.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        check: Callable[[Endpoint], object] = lambda endpoint: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_numbers.random,
        in_background: Callable[[Callable[[], None]], object] = _in_background,
    ) -> None:
        """Take endpoints as available.

        ``check`` raises a ChainError where one serves another chain, ``random`` draws from
        [0, 1), and ``in_background`` runs a check while another endpoint is being used.
        """
        if not endpoints:
            raise ConfigurationError("RPC endpoints", "at least one", "none")
        self._members = [Member(endpoint, random) for endpoint in endpoints]
        self._current = self._members[0]
        self._check = check
        self._clock = clock
        self._in_background = in_background
        self._lock = threading.Lock()
        self._highest_head, self._head_moved = -1, clock()

    @classmethod
    def connect(
        cls,
        urls: Sequence[str],
        check: Callable[[Endpoint], object],
        timeout_seconds: float = 20.0,
        longest_answer_bytes: int = LONGEST_ANSWER_BYTES,
    ) -> Self:
        """Return a pool of the endpoints at some URLs, in order of preference, each checked.

        Raises WrongChain if an endpoint serves another chain: its URL is a mistake. An endpoint
        that is merely out of order rests, unless all are out of order: then the first endpoint's
        error is raised.
        """
        endpoints = []
        for number, url in enumerate(urls, 1):
            try:
                endpoint = Endpoint.connect(
                    url,
                    timeout_seconds,
                    longest_answer_bytes=longest_answer_bytes,
                    retry=_ONE_ATTEMPT,
                )
            except ConfigurationError as error:
                subject = f"RPC endpoint {number} of {len(urls)}"
                raise ConfigurationError(subject, error.expected, error.got, error.place) from None
            endpoints.append(endpoint)
        _name_apart(endpoints)
        pool = cls(endpoints, check)
        pool.check_all()
        return pool

    def check_all(self) -> None:
        """Check every endpoint. Raises WrongChain of any, or the first's error if all fail.

        The first one that passes is the one to begin with. An endpoint has to serve another chain
        twice: the first answer may be a confused replica's, the second shows a wrong URL.
        """
        failures, passed = [], []
        for member in self._members:
            try:
                self._check_twice(member.endpoint)
            except WrongChain:
                raise
            except ChainError as error:
                failures.append(error)
                self.failed(member.endpoint, error)
            else:
                passed.append(member)
        if not passed:
            raise failures[0]
        self._current = passed[0]

    def _check_twice(self, endpoint: Endpoint) -> None:
        try:
            self._check(endpoint)
        except WrongChain:
            self._check(endpoint)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints, in the operator's order, resting or not."""
        return tuple(member.endpoint for member in self._members)

    def choose(self, asked: Collection[Endpoint] = ()) -> Endpoint:
        """Return the endpoint to ask next; one that was asked already only if there is no other.

        Raises NoEndpointAvailable while all rest or fail their checks, and the first endpoint's
        error where all serve another chain or refuse access, again and again: a person has to see
        this.
        """
        checked: list[Member] = []
        while True:
            with self._lock:
                member, due = self._next(asked)
                if member.must_be_checked and member in checked:
                    # While one check timed out after the other, the first may be due once more.
                    raise self._nobody(self._clock())
                for doubtful in due:
                    doubtful.is_being_checked = True
            # No caller waits for an endpoint in doubt while another one works.
            for doubtful in due:
                if doubtful is not member:
                    self._in_background(partial(self._recheck, doubtful))
            if member not in due:
                return member.endpoint
            self._recheck(member)
            checked.append(member)

    def first_answer(
        self, ask: Callable[[Endpoint], Answer], patience_seconds: float = PATIENCE_SECONDS
    ) -> Answer:
        """Ask one endpoint after the other, and again after a pause, as long as that may help.

        For work outside of a loop of its own. Raises the last error when patience ends and each
        endpoint that does not rest was asked once, however long that took.
        """
        deadline = self._clock() + patience_seconds
        failure: ChainError | None = None
        asked: set[Endpoint] = set()
        while True:
            try:
                endpoint = self.choose(asked)
            except NoEndpointAvailable as error:
                if self._clock() + error.retry_after > deadline:
                    raise failure or error from None
                time.sleep(error.retry_after)
                continue
            if failure is not None and endpoint in asked and self._clock() >= deadline:
                raise failure
            asked.add(endpoint)
            try:
                answer = ask(endpoint)
            except ChainError as error:
                self.failed(endpoint, error)
                failure = error
                continue
            self.succeeded(endpoint)
            return answer

    def _next(self, asked: Collection[Endpoint]) -> tuple[Member, list[Member]]:
        """Return the endpoint to ask, and those to check before or meanwhile."""
        now = self._clock()
        free = [member for member in self._members if not member.is_being_checked]
        due = [member for member in free if member.until <= now]
        ready = [member for member in due if member.is_ready(now)]
        if ready:
            if self._current not in ready:
                self._current = _likeliest(ready, asked)
            rested = [member for member in due if member.failures and member is not self._current]
            return self._current, rested
        usable = due or [member for member in free if member.earliest <= now]
        if not usable:
            raise self._nobody(now)
        self._current = chosen = _likeliest(usable, asked)
        return chosen, [chosen] if chosen.must_be_checked else []

    def _nobody(self, now: float) -> ChainError:
        first = self._members[0].error
        if first is not None and all(member.is_hopeless for member in self._members):
            return copy.copy(first)
        seconds = max(min(member.earliest for member in self._members) - now, 0.0)
        names = ", ".join(member.endpoint.name for member in self._members)
        nobody = NoEndpointAvailable(names, "one that is available", f"none for {seconds:.1f} s")
        nobody.retry_after = max(seconds, SHORTEST_PAUSE_SECONDS)
        return nobody

    def _recheck(self, member: Member) -> None:
        try:
            self._check(member.endpoint)
        except ChainError as error:
            self.failed(member.endpoint, error)
        else:
            with self._lock:
                member.pass_check()
                self._return_to(member)
        finally:
            member.is_being_checked = False

    def _return_to(self, member: Member) -> None:
        """Use an endpoint again that the operator prefers to the one in use."""
        if self._members.index(member) < self._members.index(self._current):
            self._current = member

    def succeeded(self, endpoint: Endpoint) -> None:
        """Take note that an endpoint did what was asked."""
        with self._lock:
            member = self._member(endpoint)
            if not member.must_be_checked:
                member.succeed()

    def failed(self, endpoint: Endpoint, error: ChainError) -> None:
        """Take note of an error, and let the endpoint rest as the error asks for.

        RangeRefused is no fault of the endpoint: the caller has to ask for less.
        """
        with self._lock:
            self._member(endpoint).fail(error, self._clock())

    def saw_head(self, endpoint: Endpoint, number: int) -> None:
        """Record the newest block of an endpoint.

        Where no endpoint has seen a higher block for STANDSTILL_SECONDS, the next endpoint is
        chosen: an endpoint that stays behind makes no error. The change does no harm if the chain
        itself stopped.
        """
        with self._lock:
            now = self._clock()
            if number > self._highest_head:
                self._highest_head, self._head_moved = number, now
            elif now - self._head_moved >= STANDSTILL_SECONDS:
                self._head_moved = now
                place = self._members.index(self._member(endpoint))
                others = (*self._members[place + 1 :], *self._members[:place])
                ready = [each for each in others if each.is_ready(now)]
                self._current = _likeliest(ready) if ready else self._current

    @property
    def highest_head(self) -> int:
        """The highest block that an endpoint showed since the last reorg; -1 before the first."""
        with self._lock:
            return self._highest_head

    def saw_reorg(self, number: int) -> None:
        """Record that blocks were taken back: the chain may be shorter now than it was."""
        with self._lock:
            self._highest_head, self._head_moved = number, self._clock()

    def available(self) -> tuple[Endpoint, ...]:
        """Return the endpoints that do not rest, in the operator's order."""
        with self._lock:
            now = self._clock()
            return tuple(each.endpoint for each in self._members if each.is_ready(now))

    @property
    def hosts(self) -> int:
        """Number of hosts of the endpoints, resting or not."""
        return len({_host(endpoint) for endpoint in self.endpoints})

    def others(self, endpoint: Endpoint) -> tuple[Endpoint, ...]:
        """Return the available endpoints of other hosts than this one's, in the operator's order.

        Two endpoints of one host, which differ in their keys, may be the same machine.
        """
        host = _host(endpoint)
        return tuple(each for each in self.available() if _host(each) != host)

    def seconds_until_available(self) -> float:
        """Return how long all endpoints rest; 0 if an endpoint may be asked now."""
        with self._lock:
            earliest = min(member.earliest for member in self._members)
            return max(earliest - self._clock(), 0.0)

    def statistics(self) -> tuple[EndpointStatus, ...]:
        """Return the status of each endpoint, in the operator's order."""
        with self._lock:
            now = self._clock()
            return tuple(member.status(now) for member in self._members)

    def _member(self, endpoint: Endpoint) -> Member:
        return next(member for member in self._members if member.endpoint is endpoint)


def _likeliest(members: Sequence[Member], asked: Collection[Endpoint] = ()) -> Member:
    """Return the first that was not asked, or else failed least.

    One failure counts as none. Otherwise, if two of three endpoints time out, one of the two would
    always be available again, and the third would never be asked.
    """
    return min(members, key=lambda each: (each.endpoint in asked, max(each.failures, 1)))


def _name_apart(endpoints: Sequence[Endpoint]) -> None:
    """Number the endpoints on one host, which differ in their keys only."""
    seen: Counter[str] = Counter()
    for endpoint in endpoints:
        seen[endpoint.name] += 1
        if (count := seen[endpoint.name]) > 1:
            endpoint.name = f"{endpoint.name}{_NUMBER}{count}"


def _host(endpoint: Endpoint) -> str:
    return endpoint.name.partition(_NUMBER)[0]
