"""One JSON-RPC endpoint: requests, batches, retries, and errors sorted by what helps.

web3's provider carries the bytes. Retries, back-off and the sorting of errors into retryable and
fatal happen here and nowhere else.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

import requests
from web3 import HTTPProvider
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint

from chainkit.errors import (
    AccessRefused,
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
        name = _host_of(url)
        # At DEBUG both log the URL, which may hold a key.
        for logger in ("web3.providers.HTTPProvider", "urllib3.connectionpool"):
            logging.getLogger(logger).setLevel(logging.INFO)
        provider = HTTPProvider(
            url, request_kwargs={"timeout": timeout_seconds}, exception_retry_configuration=None
        )
        return cls(provider, name)

    def request(self, method: str, *params: Any) -> Any:
        """Return the result of one call; null is None."""
        return self._retried(lambda: self._one_request(method, params))

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of many calls, in their order, in as few requests as allowed."""
        results: list[Any] = []
        for start in range(0, len(calls), BATCH_SIZE):
            part = calls[start : start + BATCH_SIZE]
            results.extend(self._retried(partial(self._one_batch, part)))
        return results

    def _one_request(self, method: str, params: Sequence[Any]) -> Any:
        answer = self._sent(lambda: self.provider.make_request(RPCEndpoint(method), list(params)))
        return self._result(method, answer)

    def _one_batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        requests_ = [(RPCEndpoint(method), list(params)) for method, params in calls]
        answers = self._sent(lambda: self.provider.make_batch_request(requests_))
        if not isinstance(answers, list):
            # An endpoint that refuses the whole batch answers with one error object.
            self._result("batch", answers)
            raise self.inconsistent("batch", f"{len(calls)} answers", "a single one")
        if len(answers) != len(calls):
            raise self.inconsistent("batch", f"{len(calls)} answers", len(answers))
        # web3 sorts the answers by their ids; one id twice would shift the others' results.
        ids = [answer["id"] for answer in answers if answer.get("id") is not None]
        if len(set(ids)) != len(ids):
            raise self.inconsistent("batch", "each id once", sorted(ids))
        return [
            self._result(method, answer) for (method, _), answer in zip(calls, answers, strict=True)
        ]

    def _retried(self, attempt: Callable[[], Parsed]) -> Parsed:
        for number in range(1, self._retry.attempts):
            try:
                return attempt()
            except RetryableChainError as error:
                pause = self._retry.pause(number - 1, getattr(error, "retry_after", None))
            time.sleep(pause)
        return attempt()

    def _sent(self, send: Callable[[], Any]) -> Any:
        try:
            return send()
        except (requests.RequestException, ValueError, TypeError, AttributeError) as caught:
            failure = caught
        # Sorted and raised outside of the handler: what was caught names the URL, which may hold
        # a key, and would be logged as the context of whatever is raised within.
        raise self._unanswered(failure)

    def _unanswered(self, failure: Exception) -> ChainError:
        if isinstance(failure, requests.HTTPError) and failure.response is not None:
            return self._http_error(failure.response)
        if isinstance(failure, requests.RequestException):
            return EndpointUnavailable(self.name, "an answer", _reason(failure))
        if isinstance(failure, ValueError):
            return self.inconsistent("answer", "JSON", failure)
        # web3 found a batch whose answers are not objects with comparable ids.
        return self.inconsistent("answer", "JSON-RPC objects", "others")

    def _http_error(self, response: requests.Response) -> ChainError:
        status = response.status_code
        if status == 429:
            limited = RateLimited(self.name, "an answer", "HTTP 429")
            limited.retry_after = _seconds(response.headers.get("Retry-After"))
            return limited
        if status >= 500:
            return EndpointUnavailable(self.name, "an answer", f"HTTP {status}")
        # 400 and 413 also say that a range is too wide: that is for the caller to judge.
        kind = RefusedRequest if status in (400, 413) else AccessRefused
        return kind(self.name, "HTTP 200", f"HTTP {status}")

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
        if _error_code(answer) in _RATE_LIMIT_CODES:
            return RateLimited(self.name, "an answer", message)
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


def _host_of(url: str) -> str:
    """Return scheme, host and port. Raises ConfigurationError, which shows no part of the rest."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
            return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
        known = parts.scheme if parts.scheme in ("ws", "wss", "ftp", "file") else "no such"
    except ValueError:
        known = "a malformed"
    raise ConfigurationError("RPC endpoint", "an http:// or https:// URL", f"{known} URL")


def _error_code(answer: dict[str, Any]) -> int | None:
    error = answer.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _seconds(header: str | None) -> float | None:
    # A superscript is a digit to Python, but no number.
    return float(header) if header and header.isascii() and header.isdecimal() else None


def _reason(error: requests.RequestException) -> str:
    """Say in a few words why no answer came; the full text names the URL, which may hold a key."""
    if isinstance(error, requests.Timeout):
        return "a time-out"
    if "Name or service not known" in str(error) or "resolve" in str(error):
        return "no such host"
    return "connection refused" if "refused" in str(error) else type(error).__name__
