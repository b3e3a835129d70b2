"""JSON-RPC over HTTP with bounded answers: bytes held, seconds waited, and JSON by orjson.

An endpoint may answer with more than fits in memory, compressed to next to nothing, or a byte at
a time. So the body is read in pieces, counted after decompression, and all that is sent and read
for one answer is under one deadline.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson
import requests
import urllib3

from chainkit.chain.log_query import LogQuery
from chainkit.chain.session import EndpointSession, deadline, seconds_left

RpcCall = tuple[str, Sequence[Any]]
"""A method and its parameters."""

LONGEST_ANSWER_BYTES: Final = 64 * 2**20
"""Most bytes of one answer, after decompression."""

LONGEST_RANGE_BYTES: Final = 16 * 2**20
"""Most bytes of logs of several blocks: fewer blocks can be asked for instead."""

_LONGEST_ERROR_BYTES: Final = 64 * 2**10
_CHUNK_BYTES: Final = 64 * 2**10


class MalformedAnswer(ValueError):
    """A body that is no JSON, or no JSON-RPC answer to what was asked."""

    def __init__(self, expected: str, got: str) -> None:
        """Keep the expected part; the received part is the message."""
        super().__init__(got)
        self.expected = expected


class AnswerTooLarge(Exception):
    """A body of more bytes than the bound; the remaining bytes were not read."""


class HttpFailure(Exception):
    """A status other than 2xx, with the beginning of its body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Keep the parts of the answer that give the reason."""
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for an endpoint, in seconds."""

    connect: float = 5.0
    read: float = 20.0
    """Between two pieces of an answer; the whole answer may take three times as long."""

    @property
    def exchange(self) -> float:
        """From the connection to the last byte, even if the endpoint sends slowly."""
        return self.connect + 3 * self.read


class Transport(Protocol):
    """Sends calls to an endpoint and returns its answers: JSON that is not checked yet."""

    def make_request(self, method: str, params: Sequence[Any]) -> Any:
        """Return the answer to one call."""

    def make_batch_request(self, calls: Sequence[RpcCall]) -> Any:
        """Return the answers in the order of the calls, or the one error that refuses all calls."""


class HttpTransport:
    """Sends JSON-RPC over HTTP, one session per thread. ``bytes_received`` counts the bodies."""

    def __init__(
        self,
        url: str,
        timeouts: Timeouts | None = None,
        longest_answer_bytes: int = LONGEST_ANSWER_BYTES,
        session: EndpointSession | None = None,
    ) -> None:
        """Take the URL; nothing is sent yet. ``session`` is for all threads, as tests need."""
        self._url = url
        self.bytes_received = 0
        self.longest_answer_bytes = longest_answer_bytes
        self._timeouts = timeouts or Timeouts()
        self._session = session
        self._sessions = threading.local()
        self._numbers = itertools.count()
        self._counting = threading.Lock()

    def make_request(self, method: str, params: Sequence[Any]) -> Any:
        """Return the answer to one call.

        Raises MalformedAnswer, AnswerTooLarge, HttpFailure or requests.RequestException.
        """
        call = self._call(method, params)
        answer = _decoded(self._post(call, self._longest([(method, params)])))
        if isinstance(answer, dict) and "result" in answer:
            _check_id(answer, call["id"])
        return answer

    def make_batch_request(self, calls: Sequence[RpcCall]) -> Any:
        """Return the answers in the order of the calls, or the one error that refuses all calls.

        Raises MalformedAnswer also where the answers do not belong to the calls, one to each.
        """
        requested = [self._call(method, params) for method, params in calls]
        answers = _decoded(self._post(requested, self._longest(calls)))
        if isinstance(answers, list):
            return _in_order(answers, requested)
        return answers

    def _call(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        number = next(self._numbers)
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or []}

    def _longest(self, calls: Sequence[RpcCall]) -> int:
        query = LogQuery.among(calls)
        is_divisible = query is not None and query.blocks > 1
        longest = self.longest_answer_bytes
        return min(longest, LONGEST_RANGE_BYTES) if is_divisible else longest

    def _post(self, request: object, longest: int) -> bytearray:
        with (
            deadline(self._timeouts.exchange),
            self._own_session().post_json(
                self._url,
                orjson.dumps(request),
                (self._timeouts.connect, self._timeouts.read),
            ) as response,
        ):
            if 200 <= response.status_code < 300:
                return self._body(response, longest)
            raise HttpFailure(response.status_code, response.headers, self._refusal(response))

    def _own_session(self) -> EndpointSession:
        if self._session is not None:
            return self._session
        if not hasattr(self._sessions, "session"):
            self._sessions.session = EndpointSession()
        session: EndpointSession = self._sessions.session
        return session

    def _refusal(self, response: requests.Response) -> bytes:
        """Return the body of a refusal, empty where it is too long or cut."""
        try:
            return bytes(self._body(response, _LONGEST_ERROR_BYTES))
        except (requests.RequestException, AnswerTooLarge):
            return b""

    def _body(self, response: requests.Response, longest: int) -> bytearray:
        announced = response.headers.get("Content-Length", "")
        if announced.isascii() and announced.isdecimal() and int(announced) > longest:
            raise AnswerTooLarge(f"{announced} bytes announced")
        body = bytearray()
        try:
            while chunk := _chunk(response.raw):
                body += chunk
                if len(body) > longest:
                    raise AnswerTooLarge(f"more than {longest} bytes")
                if seconds_left() < 0:
                    raise requests.ReadTimeout("an answer that does not end")
        finally:
            with self._counting:
                self.bytes_received += len(body)
        return body


def _chunk(raw: Any) -> bytes:
    """Return the next piece of a body, decompressed: the bytes that have arrived, even if few."""
    try:
        chunk: bytes = raw.read1(_CHUNK_BYTES, decode_content=True)
        return chunk
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.ReadTimeout("no more of the answer") from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError("an answer that was cut") from error


def _decoded(body: bytearray) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # Raised without its context, which holds the whole body once more.
        message = error.msg
    raise MalformedAnswer("JSON", message)


def _check_id(answer: Mapping[str, Any], number: int) -> None:
    if type(answer.get("id")) is not int or answer["id"] != number:
        raise MalformedAnswer("the answer to the request", "another's")


def _in_order(answers: list[Any], calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    if not all(isinstance(answer, dict) for answer in answers):
        raise MalformedAnswer("JSON-RPC objects", "others")
    for answer in answers:
        is_of_all = answer.get("id") is None or len(answers) == 1
        if is_of_all and answer.get("error") is not None:
            # The error names no call, or stands for all calls: geth returns the first call's id.
            return [answer] * len(calls)
    by_id = {answer["id"]: answer for answer in answers if type(answer.get("id")) is int}
    if len(by_id) != len(answers) or by_id.keys() != {call["id"] for call in calls}:
        raise MalformedAnswer("the ids of the calls, each once", "others")
    return [by_id[call["id"]] for call in calls]
