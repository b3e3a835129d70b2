"""One JSON-RPC endpoint: requests, batches, retries, and errors sorted by what helps.

The transport carries the bytes; ``failures`` sorts errors into retryable and fatal. Waiting and
failing over between endpoints is for ``EndpointPool``, whose endpoints try once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeVar

import requests

from chainkit.chain.backoff import Backoff
from chainkit.chain.failures import BATCH, FailureSorter, RpcErrorObject
from chainkit.chain.location import location_of, secrets_of
from chainkit.chain.log_query import LogQuery
from chainkit.chain.transport import (
    LONGEST_ANSWER_BYTES,
    AnswerTooLarge,
    HttpFailure,
    HttpTransport,
    RpcCall,
    Timeouts,
    Transport,
)
from chainkit.errors import (
    InconsistentAnswer,
    OversizedAnswer,
    OversizedBatch,
    RangeRefused,
    RateLimited,
    RefusedRequest,
    RetryableChainError,
)

Parsed = TypeVar("Parsed")

BATCH_SIZE: Final = 100
"""Requests in one JSON-RPC batch: providers commonly refuse more."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and with which pauses, an unanswered request is sent again."""

    attempts: int = 4
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 5.0

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after a failed attempt (from 0): exponential, with jitter."""
        if retry_after is not None:
            return min(retry_after, self.longest_pause_seconds)
        backoff = Backoff(self.first_pause_seconds, self.longest_pause_seconds, jitter=0.5)
        return backoff.pause(attempt)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests to an endpoint and its answers, counted since the start."""

    requests: int
    bytes_received: int
    """Bodies of answers, after decompression."""
    seconds: float
    """Spent waiting for answers."""


class RpcClient:
    """One JSON-RPC endpoint. Errors show ``name``, without a path, which may hold a key."""

    def __init__(
        self,
        transport: Transport,
        name: str,
        retry: RetryPolicy | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        """Take the transport of the requests; tests pass a transport that answers from memory.

        ``secrets`` are kept out of errors, should the endpoint repeat them.
        """
        self.transport = transport
        self.name = name
        self._retry = retry or RetryPolicy()
        self._secrets = secrets
        self._requests, self._seconds = 0, 0.0
        self._batch_size = BATCH_SIZE
        self._counting = threading.Lock()
        self.proved_header_fields: dict[tuple[str, ...], int] = {}
        """The fields of hard forks in a proved header, up to the highest such block."""
        self.block_receipts_from = 0.0
        """On the monotonic clock, when the endpoint is asked for receipts by block again."""

    def __repr__(self) -> str:
        """Show the host only."""
        return f"{type(self).__name__}({self.name})"

    @classmethod
    def connect(
        cls,
        url: str,
        timeout_seconds: float = 20.0,
        *,
        connect_timeout_seconds: float = 5.0,
        longest_answer_bytes: int = LONGEST_ANSWER_BYTES,
        retry: RetryPolicy | None = None,
    ) -> Self:
        """Return the endpoint at an http(s) URL; nothing is sent yet.

        ``timeout_seconds`` is the longest silence in an answer. An answer of more bytes than
        ``longest_answer_bytes`` is RangeRefused for logs, InconsistentAnswer for all else.
        """
        name = location_of(url)
        # At DEBUG the library logs the URL, which may hold a key.
        logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)
        timeouts = Timeouts(connect_timeout_seconds, timeout_seconds)
        transport = HttpTransport(url, timeouts, longest_answer_bytes)
        return cls(transport, name, retry, secrets_of(url))

    @property
    def traffic(self) -> Traffic:
        """Requests and answers of all threads so far."""
        transport = self.transport
        received = transport.bytes_received if isinstance(transport, HttpTransport) else 0
        return Traffic(self._requests, received, self._seconds)

    def request(self, method: str, *params: Any) -> Any:
        """Return the result of one call; null is None.

        A refused ``eth_getLogs`` of several blocks is RangeRefused whatever the error's text,
        unless the text reports too frequent requests or an endpoint that lags behind.
        """
        return self._retried(partial(self._one_request, method, params))

    def batch(self, calls: Sequence[RpcCall]) -> list[Any]:
        """Return the results of many calls, in their order, in as few requests as allowed.

        If one call is refused, the batch is refused; a limit of requests or of a batch takes
        precedence over other refusals. Where a request has more calls than the endpoint takes, half
        as many calls are sent from then on, at last one call per request. Raises OversizedAnswer,
        or RangeRefused if logs of several blocks are among the calls, where the answers are more
        bytes than the endpoint gives at once.
        """
        results: list[Any] = []
        while len(results) < len(calls):
            part = calls[len(results) : len(results) + self._batch_size]
            try:
                results.extend(self._retried(partial(self._one_batch, part)))
            except OversizedBatch:
                self._batch_size = max(1, min(self._batch_size, len(part) // 2))
        return results

    def _one_request(self, method: str, params: Sequence[Any]) -> Any:
        query = LogQuery.among([(method, params)])
        send = partial(self.transport.make_request, method, params)
        return self._result(method, query, self._sent(method, send, query))

    def _one_batch(self, calls: Sequence[RpcCall]) -> list[Any]:
        if self._batch_size == 1:
            return [self._one_request(method, params) for method, params in calls]
        query = LogQuery.among(calls)
        send = partial(self.transport.make_batch_request, calls)
        answers = self._sent(BATCH, send, query)
        if not isinstance(answers, list):
            # An endpoint that refuses the whole batch answers with one error object.
            self._refuse_if_limited([(BATCH, ())], [answers], query)
            self._result(BATCH, query, answers)
            raise self.inconsistent("batch", f"{len(calls)} answers", "a single one")
        if len(answers) != len(calls):
            raise self.inconsistent("batch", f"{len(calls)} answers", len(answers))
        self._refuse_if_limited(calls, answers, query)
        return [
            self._result(method, LogQuery.among([(method, params)]), answer)
            for (method, params), answer in zip(calls, answers, strict=True)
        ]

    def _refuse_if_limited(
        self, calls: Sequence[RpcCall], answers: Sequence[Any], query: LogQuery | None
    ) -> None:
        for call, answer in zip(calls, answers, strict=True):
            error = answer.get("error") if isinstance(answer, dict) else None
            if error is None:
                continue
            about = RpcErrorObject.of(error)
            if failure := self._sorter.of_batch(about, query, call[0], len(calls)):
                raise failure
            limited = self._sorter.of_answer(call[0], error, LogQuery.among([call]))
            if isinstance(limited, RateLimited):
                raise limited

    def _retried(self, attempt: Callable[[], Parsed]) -> Parsed:
        for number in range(1, self._retry.attempts):
            try:
                return _attempted(attempt, number)
            except (RangeRefused, OversizedAnswer):
                # The same would be refused again.
                raise
            except RetryableChainError as error:
                pause = self._retry.pause(number - 1, getattr(error, "retry_after", None))
            time.sleep(pause)
        return _attempted(attempt, self._retry.attempts)

    def _sent(self, method: str, send: Callable[[], Any], query: LogQuery | None) -> Any:
        start = time.perf_counter()
        try:
            return send()
        except (requests.RequestException, HttpFailure, AnswerTooLarge, ValueError) as caught:
            failure = self._sorter.of_failure(method, caught, query)
        finally:
            with self._counting:
                self._requests += 1
                self._seconds += time.perf_counter() - start
        # Raised outside of the handler: the caught error names the URL, which may contain a key,
        # and its frames contain the answer. An error raised in the handler would keep both as its
        # context.
        raise failure

    def _result(self, method: str, query: LogQuery | None, answer: Any) -> Any:
        if not isinstance(answer, dict):
            raise self.inconsistent(method, "a JSON-RPC object", type(answer).__name__)
        if (error := answer.get("error")) is not None:
            if RpcErrorObject.of(error).means_unknown(method):
                return None
            raise self._sorter.of_answer(method, error, query)
        if "result" not in answer:
            raise self.inconsistent(method, "a result or an error", "neither")
        return answer["result"]

    @property
    def _sorter(self) -> FailureSorter:
        return FailureSorter(self.name, self._secrets)

    def inconsistent(self, subject: str, expected: object, got: object) -> InconsistentAnswer:
        """Build the error for an answer of this endpoint that cannot be right."""
        return self._sorter.inconsistent(subject, expected, got)

    def parsed(self, subject: str, parse: Callable[[Any], Parsed], answer: Any) -> Parsed:
        """Return an answer as ``parse`` reads it. Raises InconsistentAnswer if ``parse`` fails."""
        try:
            return parse(answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self.inconsistent(subject, "well-formed fields", repr(error)) from error


def _attempted(attempt: Callable[[], Parsed], number: int) -> Parsed:
    try:
        return attempt()
    except RefusedRequest as refused:
        refused.is_repeated = number > 1
        raise
