"""Sorts failures of a request into the errors of ``chainkit.errors``, by the remedy.

The refusal of a request for logs may mean that the request was for too many blocks. An error shows
only the host of the endpoint's URL, and removes parts of the URL that the endpoint repeats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

import orjson
import requests

from chainkit.chain.location import shown
from chainkit.chain.log_query import LogQuery
from chainkit.chain.refusals import (
    BatchLimit,
    Refusal,
    RefusalKind,
    read_batch_limit,
    read_rate_limit,
    read_refusal,
    tells_of_missing_method,
    tells_of_missing_state,
    tells_of_unfinished_index,
)
from chainkit.chain.transport import AnswerTooLarge, HttpFailure, MalformedAnswer
from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointFault,
    EndpointTimedOut,
    EndpointUnavailable,
    InconsistentAnswer,
    MethodFault,
    MethodRefused,
    OversizedAnswer,
    OversizedBatch,
    RangeRefused,
    RateLimited,
    RefusedRequest,
    StateFault,
    StateRefused,
)

BATCH: Final = "batch"
"""The method's name in an error about several calls."""

_REVERT_CODE: Final = 3
_NO_SUCH_BLOCK_CODE: Final = -39001
_CALLER_FAULT_CODES: Final = frozenset(
    {_REVERT_CODE, _NO_SUCH_BLOCK_CODE, -32600, -32601, -32602, -32000, -32003, -32004}
)
_TIMEOUT_STATUSES: Final = frozenset({408, 504, 524})
_TOO_MUCH_STATUSES: Final = frozenset({400, 413, 422})
_ENTITY_TOO_LARGE: Final = 413
_ACCESS_STATUSES: Final = frozenset({401, 402, 403, 407})
"""HTTP statuses that only a person can correct. All others pass by themselves: a load balancer may
answer 404 for a moment."""

_HEX: Final = re.compile("0x(?:[0-9a-fA-F]{2})*")
_OF_TRANSACTIONS: Final = frozenset({"eth_getTransactionByHash", "eth_getTransactionReceipt"})
_STATE_METHODS: Final = frozenset({"eth_call", "eth_getCode"})
"""Words of providers that answer for old blocks only to paying customers."""


@dataclass(frozen=True, slots=True)
class RpcErrorObject:
    """The ``error`` of an answer, whatever an endpoint put there."""

    code: int | None
    message: str
    data: object

    @classmethod
    def of(cls, error: object) -> Self:
        """Read an answer's error."""
        if not isinstance(error, dict):
            return cls(None, str(error), None)
        code = error.get("code")
        message = str(error.get("message", error))
        return cls(code if isinstance(code, int) else None, message, error.get("data"))

    @property
    def revert_data(self) -> str | None:
        """Bytes that a contract reverted with, in hex; never a sentence of the endpoint."""
        is_hex = isinstance(self.data, str) and _HEX.fullmatch(self.data)
        return str(self.data) if is_hex else None

    def means_unknown(self, method: str) -> bool:
        """Return whether the answer means that a transaction is not known, or not yet."""
        return method in _OF_TRANSACTIONS and tells_of_unfinished_index(self.message)

    @classmethod
    def in_body(cls, body: bytes) -> Self | None:
        """Return the one in the body of an HTTP error, or None if there is none."""
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
        if isinstance(answer, list) and answer:
            answer = answer[0]
        error = answer.get("error") if isinstance(answer, dict) else None
        return cls.of(error) if error is not None else None


@dataclass(frozen=True, slots=True)
class FailureSorter:
    """Builds the errors of one endpoint. The errors do not show ``secrets``."""

    name: str
    secrets: tuple[str, ...] = ()

    def of_answer(self, method: str, error: object, query: LogQuery | None) -> ChainError:
        """Return the error for an answer with an ``error``."""
        about = RpcErrorObject.of(error)
        if query is not None:
            refusal = read_refusal(about.code, about.message, about.data)
            return self.log_query_error(query, refusal, about.message)
        message = shown(about.message, self.secrets)
        if read_batch_limit(about.message, about.data) is BatchLimit.BYTES:
            return self._oversized(message)
        if limit := read_rate_limit(about.code, about.message, about.data):
            return self._rate_limited(about.message, limit.retry_after)
        refused_type, fault_type = _error_types(method, about)
        if about.code not in _CALLER_FAULT_CODES:
            return fault_type(f"{method} at {self.name}", "a result", message)
        refused = refused_type(f"{method} at {self.name}", "a result", message)
        refused.data = about.revert_data
        return refused

    def of_batch(
        self, about: RpcErrorObject, query: LogQuery | None, method: str = BATCH, calls: int = 1
    ) -> ChainError | None:
        """Return the error of a batch above a limit, None where an error is about something else.

        ``query`` covers all logs that the batch of ``calls`` calls asks for. ``method`` is the
        method of the call that the error answers.
        """
        limit = read_batch_limit(about.message, about.data)
        text = shown(about.message, self.secrets)
        if limit is BatchLimit.CALLS:
            return OversizedBatch(f"batch at {self.name}", "answers", text)
        # The text of a refused range may name a range that would be answered.
        if limit is None or calls == 1 or method == "eth_getLogs":
            return None
        return self.of_failure(BATCH, AnswerTooLarge(text), query)

    def of_failure(self, method: str, failure: Exception, query: LogQuery | None) -> ChainError:
        """Return the error for what kept an answer from coming, or from being read."""
        if isinstance(failure, HttpFailure):
            return self._of_status(method, failure, query)
        if isinstance(failure, requests.ReadTimeout) and query is not None and query.blocks > 1:
            return self._range_refused(query, "a time-out")
        if isinstance(failure, requests.Timeout):
            return EndpointTimedOut(self.name, "an answer", "a time-out")
        if isinstance(failure, requests.RequestException):
            return EndpointUnavailable(self.name, "an answer", unanswered_reason(failure))
        if isinstance(failure, AnswerTooLarge):
            if query is not None and query.blocks > 1:
                return self._range_refused(query, str(failure))
            return self._oversized(str(failure))
        expected = failure.expected if isinstance(failure, MalformedAnswer) else "JSON"
        return self.inconsistent("answer", expected, shown(failure, self.secrets))

    def log_query_error(self, query: LogQuery, refusal: Refusal, message: str) -> ChainError:
        """Return the error for a refused query for logs.

        A single block cannot be requested in parts: then the endpoint itself is unusable.
        """
        if refusal.kind is RefusalKind.RATE:
            return self._rate_limited(message, refusal.retry_after)
        text = shown(message, self.secrets)
        if refusal.kind is RefusalKind.BEHIND:
            return self.inconsistent(query.subject, "logs", text)
        if query.blocks <= 1:
            return EndpointUnavailable(f"{query.subject} at {self.name}", "logs", text)
        return self._range_refused(query, text, refusal.suggested_blocks)

    def inconsistent(self, subject: str, expected: object, got: object) -> InconsistentAnswer:
        """Build the error for an answer of this endpoint that cannot be right."""
        return InconsistentAnswer(f"{subject} at {self.name}", expected, got)

    def _of_status(self, method: str, failure: HttpFailure, query: LogQuery | None) -> ChainError:
        status, got = failure.status, f"HTTP {failure.status}"
        pause = _seconds(failure.headers.get("Retry-After"))
        about = RpcErrorObject.in_body(failure.body)
        if method == BATCH and (error := self._oversized_batch(failure, about, query)):
            return error
        read = read_rate_limit if query is None else read_refusal
        said = read(about.code, about.message, about.data) if about else None
        if status == 429 or (said is not None and said.kind is RefusalKind.RATE):
            stated = said.retry_after if said is not None else None
            return self._rate_limited(got, stated if pause is None else pause)
        if query is not None and (error := self._refused_logs(failure, about, query)):
            return error
        if method in _STATE_METHODS and status == 403:
            text = about.message if about else failure.body.decode(errors="replace")
            if tells_of_missing_state(text):
                return StateRefused(self.name, "HTTP 200", shown(f"{got} {text}", self.secrets))
        if status in _ACCESS_STATUSES:
            return AccessRefused(self.name, "HTTP 200", got)
        if status in _TOO_MUCH_STATUSES:
            # The text may report that the endpoint does not offer the method.
            if about is None:
                return RefusedRequest(self.name, "HTTP 200", got)
            refused_type, _ = _error_types(method, about)
            text = shown(f"{got} {about.message}", self.secrets)
            return refused_type(self.name, "HTTP 200", text)
        return EndpointUnavailable(self.name, "an answer", got)

    def _oversized_batch(
        self, failure: HttpFailure, about: RpcErrorObject | None, query: LogQuery | None
    ) -> ChainError | None:
        """Return the error if the answer is about a batch's size, by its text or its status."""
        if about is not None and (error := self.of_batch(about, query)):
            return error
        if failure.status != _ENTITY_TOO_LARGE or (query is not None and query.blocks > 1):
            return None
        return OversizedBatch(f"batch at {self.name}", "answers", f"HTTP {failure.status}")

    def _refused_logs(
        self, failure: HttpFailure, about: RpcErrorObject | None, query: LogQuery
    ) -> ChainError | None:
        """Return the error if the status is about the range, None if it is about the endpoint."""
        if about is None:
            text = failure.body.decode(errors="replace")
            about = RpcErrorObject(None, text if failure.status in _TOO_MUCH_STATUSES else "", None)
        refusal = read_refusal(about.code, about.message, about.data)
        if refusal.kind is RefusalKind.UNKNOWN and (
            failure.status not in _TOO_MUCH_STATUSES | _TIMEOUT_STATUSES
        ):
            return None
        if failure.status in _TIMEOUT_STATUSES and query.blocks <= 1:
            return None
        return self.log_query_error(
            query, refusal, f"HTTP {failure.status} {about.message}".strip()
        )

    def _oversized(self, got: str) -> OversizedAnswer:
        return OversizedAnswer(f"answer at {self.name}", "one of bounded size", got)

    def _rate_limited(self, message: str, retry_after: float | None) -> RateLimited:
        limited = RateLimited(self.name, "an answer", shown(message, self.secrets))
        limited.retry_after = retry_after
        return limited

    def _range_refused(
        self, query: LogQuery, got: str, suggested_blocks: int | None = None
    ) -> RangeRefused:
        refused = RangeRefused(f"{query.subject} at {self.name}", "logs", got)
        # Some suggest the same range again, or name the limit of another plan: that does not help.
        if suggested_blocks is not None and suggested_blocks < query.blocks:
            refused.suggested_blocks = suggested_blocks
        return refused


def _error_types(
    method: str, about: RpcErrorObject
) -> tuple[type[RefusedRequest], type[EndpointFault]]:
    """Return how a refusal and a fault with these words are typed; a revert's words are not read.

    Some texts match both: a state that is unavailable to ``eth_call`` is no missing method.
    """
    if about.code == _REVERT_CODE:
        return RefusedRequest, EndpointFault
    has_no_method = tells_of_missing_method(about.message)
    if tells_of_missing_state(about.message) and (method in _STATE_METHODS or not has_no_method):
        return StateRefused, StateFault
    return (MethodRefused, MethodFault) if has_no_method else (RefusedRequest, EndpointFault)


def _seconds(header: str | None) -> float | None:
    # A superscript is a digit to Python, but no number.
    return float(header) if header and header.isascii() and header.isdecimal() else None


def unanswered_reason(error: requests.RequestException) -> str:
    """Return why no answer came, in a few words; the full text has the URL, maybe with a key."""
    if "Name or service not known" in str(error) or "resolve" in str(error):
        return "no such host"
    return "connection refused" if "refused" in str(error) else type(error).__name__
