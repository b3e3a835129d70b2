"""One JSON-RPC endpoint: requests, batches, retries, and errors sorted by what helps.

web3's provider carries the bytes. Retries, back-off and the sorting of errors into retryable and
fatal happen here and nowhere else.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

import requests
from web3 import HTTPProvider
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint

from chainkit.errors import (
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    RefusedRequest,
    RetryableChainError,
)

Parsed = TypeVar("Parsed")

BATCH_SIZE: Final = 100
"""Requests in one JSON-RPC batch: providers commonly refuse more."""

_RATE_LIMIT_CODES: Final = frozenset({-32005, 429})
_REVERT_CODE: Final = 3
_CALLER_FAULT_CODES: Final = frozenset({_REVERT_CODE, -32600, -32601, -32602, -32000, -32003})


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
        ceiling = min(self.first_pause_seconds * 2.0**attempt, self.longest_pause_seconds)
        return ceiling * (0.5 + random.random() / 2)


class RpcClient:
    """One JSON-RPC endpoint. ``name`` is what errors show: never a path, it may hold a key."""

    def __init__(
        self, provider: JSONBaseProvider, name: str, retry: RetryPolicy | None = None
    ) -> None:
        """Wrap a web3 provider; tests pass one that answers from memory."""
        self.provider = provider
        self.name = name
        self._retry = retry or RetryPolicy()

    def __repr__(self) -> str:
        """Show the host only."""
        return f"{type(self).__name__}({self.name})"

    @classmethod
    def connect(cls, url: str, timeout_seconds: float = 20.0) -> Self:
        """Return the endpoint at an http(s) URL; nothing is sent yet."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            # Not the URL itself: even a mistyped one may hold a key.
            got = f"scheme {parts.scheme!r} and host {parts.hostname or ''!r}"
            raise ConfigurationError("RPC endpoint", "an http:// or https:// URL", got)
        provider = HTTPProvider(
            url, request_kwargs={"timeout": timeout_seconds}, exception_retry_configuration=None
        )
        port = f":{parts.port}" if parts.port else ""
        return cls(provider, f"{parts.scheme}://{parts.hostname}{port}")

    def request(self, method: str, *params: Any) -> Any:
        """Return the result of one call; null is None."""
        answer = self._send(lambda: self.provider.make_request(RPCEndpoint(method), list(params)))
        return self._result(method, answer)

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of many calls, in their order, in as few requests as allowed."""
        results: list[Any] = []
        for start in range(0, len(calls), BATCH_SIZE):
            results.extend(self._one_batch(calls[start : start + BATCH_SIZE]))
        return results

    def _one_batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> Iterator[Any]:
        requests_ = [(RPCEndpoint(method), list(params)) for method, params in calls]
        answers = self._send(lambda: self.provider.make_batch_request(requests_))
        if not isinstance(answers, list):
            # An endpoint that refuses the whole batch answers with one error object.
            self._result("batch", answers)
            raise self.inconsistent("batch", f"{len(calls)} answers", "a single one")
        if len(answers) != len(calls):
            raise self.inconsistent("batch", f"{len(calls)} answers", len(answers))
        return (
            self._result(method, answer) for (method, _), answer in zip(calls, answers, strict=True)
        )

    def _send(self, send: Callable[[], Any]) -> Any:
        for attempt in range(self._retry.attempts):
            try:
                return self._sent_once(send)
            except RetryableChainError as error:
                if attempt + 1 == self._retry.attempts:
                    raise
                time.sleep(self._retry.pause(attempt, getattr(error, "retry_after", None)))
        raise AssertionError("a retry policy has at least one attempt")

    def _sent_once(self, send: Callable[[], Any]) -> Any:
        try:
            answer = send()
        except requests.HTTPError as error:
            raise self._http_error(error) from error
        except requests.RequestException as error:
            raise EndpointUnavailable(self.name, "an answer", _reason(error)) from error
        except ValueError as error:
            raise self.inconsistent("answer", "JSON", error) from error
        if isinstance(answer, dict) and _error_code(answer) in _RATE_LIMIT_CODES:
            raise RateLimited(self.name, "an answer", answer["error"].get("message"))
        return answer

    def _http_error(self, error: requests.HTTPError) -> ChainError:
        status = error.response.status_code
        if status == 429:
            limited = RateLimited(self.name, "an answer", "HTTP 429")
            limited.retry_after = _seconds(error.response.headers.get("Retry-After"))
            return limited
        if status >= 500:
            return EndpointUnavailable(self.name, "an answer", f"HTTP {status}")
        return RefusedRequest(self.name, "HTTP 200", f"HTTP {status}")

    def _result(self, method: str, answer: Any) -> Any:
        if not isinstance(answer, dict):
            raise self.inconsistent(method, "a JSON-RPC object", type(answer).__name__)
        if answer.get("error") is not None:
            raise self._rpc_error(method, answer)
        if "result" not in answer:
            raise self.inconsistent(method, "a result or an error", "neither")
        return answer["result"]

    def _rpc_error(self, method: str, answer: dict[str, Any]) -> ChainError:
        error = answer["error"]
        message = error.get("message", error) if isinstance(error, dict) else error
        if _error_code(answer) not in _CALLER_FAULT_CODES:
            return EndpointUnavailable(f"{method} at {self.name}", "a result", message)
        refused = RefusedRequest(f"{method} at {self.name}", "a result", message)
        refused.data = error.get("data")
        return refused

    def inconsistent(self, subject: str, expected: object, got: object) -> InconsistentAnswer:
        """Build the error for an answer of this endpoint that cannot be right."""
        return InconsistentAnswer(f"{subject} at {self.name}", expected, got)

    def parsed(self, subject: str, parse: Callable[[Any], Parsed], answer: Any) -> Parsed:
        """Return what ``parse`` makes of an answer. Raises InconsistentAnswer if it cannot."""
        try:
            return parse(answer)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self.inconsistent(subject, "well-formed fields", repr(error)) from error


def _error_code(answer: dict[str, Any]) -> int | None:
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None


def _reason(error: requests.RequestException) -> str:
    """Say in a few words why no answer came; the full text names the URL, which may hold a key."""
    if isinstance(error, requests.Timeout):
        return "a time-out"
    if "Name or service not known" in str(error) or "resolve" in str(error):
        return "no such host"
    return "connection refused" if "refused" in str(error) else type(error).__name__
