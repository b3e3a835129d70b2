"""No answers, or none of JSON-RPC's or Ethereum's shape: broken, cut, mistyped, gigantic, refused.

Each fault is one named function over the honest answer or reply.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from support.endpoints.fault_proxy import Answer, Call, Fault, Reply
from support.endpoints.faults import COUNTER, HEADERS, LOGS, error, logs_fault, result_changed

GIGANTIC_BYTES = 400 * 2**20


# ----------------------------------------------------------------- wrong in shape


def _wrong_type(methods: frozenset[str], name: str, value: Any) -> Fault:
    def change(_: Call, answer: Answer) -> Answer:
        return answer | {"result": value}

    return Fault(f"{name} for the result of {min(methods)}", change, methods=methods)


def _of_first(change: Callable[[Answer], Any]) -> Callable[[Call, Any], Any]:
    """Change a header, or the first of some logs."""

    def changed(_: Call, result: Any) -> Any:
        if isinstance(result, list):
            return [change(result[0]), *result[1:]] if result else result
        return change(result)

    return changed


_QUANTITIES = {"blockNumber", "transactionIndex", "logIndex", "number", "timestamp"}
_NEITHER: tuple[tuple[str, Any], ...] = (
    ("a number", 7),
    ("null", None),
    ("an object", {}),
    ("a list", []),
    ("no hex digits", "0xzz"),
    ("no prefix", "77"),
    ("nothing", ""),
    ("true", True),
)
_NO_QUANTITY = (("something negative", "-0x1"), ("very many digits", "0x" + "7" * 100_000))
_NO_DATA = (("an odd number of digits", "0x777"), ("two bytes too few", "0x" + "77" * 18))


def _field_faults(methods: frozenset[str], fields: tuple[str, ...]) -> Iterator[Fault]:
    kind = "log" if methods is LOGS else "header"
    for number, field in enumerate(fields):
        missing = _of_first(lambda item, field=field: {k: v for k, v in item.items() if k != field})
        yield Fault(f"{kind} without {field}", result_changed(missing), methods=methods)
        special = _NO_QUANTITY if field in _QUANTITIES else _NO_DATA
        for name, value in (_NEITHER[number % len(_NEITHER)], special[number % 2]):
            other = _of_first(lambda item, field=field, value=value: item | {field: value})
            yield Fault(f"{kind}: {name} for {field}", result_changed(other), methods=methods)


_LOG_FIELDS = ("address", "topics", "data", "blockNumber", "blockHash", "transactionHash",
               "transactionIndex", "logIndex")  # fmt: skip
_HEADER_FIELDS = ("number", "hash", "parentHash", "timestamp", "logsBloom")

SHAPELESS_ANSWERS = (
    *_field_faults(LOGS, _LOG_FIELDS),
    *_field_faults(HEADERS, _HEADER_FIELDS),
    *(
        _wrong_type(methods, name, value)
        for methods in (LOGS, HEADERS, COUNTER)
        for name, value in (("a number", 7), ("a string", "yes"), ("true", True), ("a list", [[]]))
    ),
    _wrong_type(LOGS, "null", None),
    _wrong_type(LOGS, "an object", {"logs": []}),
    _wrong_type(COUNTER, "null", None),
    logs_fault("null among them", lambda logs: [*logs, None]),
    Fault("neither result nor error", lambda _, answer: {"jsonrpc": "2.0", "id": answer["id"]}),
    Fault("another id", lambda _, answer: answer | {"id": 777_777}),
    Fault("no id", lambda _, answer: {k: v for k, v in answer.items() if k != "id"}),
    Fault("an id of another type", lambda _, answer: answer | {"id": {"is": answer["id"]}}),
    Fault("null for an answer", lambda *_: None),
    Fault("a string for an answer", lambda *_: "rate limit exceeded"),
    Fault("a string for an error", lambda _, answer: {"id": answer["id"], "error": "overloaded"}),
    Fault("a list for an error", lambda _, answer: {"id": answer["id"], "error": [1]}),
    Fault(
        "an error without a code",
        lambda _, answer: {"id": answer["id"], "error": {"message": "internal"}},
    ),
    Fault(
        "a code of another type",
        lambda _, answer: {"id": answer["id"], "error": {"code": "-32603", "message": None}},
    ),
)


# ---------------------------------------------------------------- wrong in the batch


def _batch_fault(name: str, change: Callable[[list[Answer]], Any]) -> Fault:
    def changed(request: Any, reply: Reply) -> Reply:
        if not isinstance(request, list) or len(request) < 2:
            return reply
        return Reply(json.dumps(change(json.loads(reply.body))).encode())

    return Fault(f"batch: {name}", of_reply=changed)


BATCH_FAULTS = (
    _batch_fault("one missing", lambda answers: answers[:-1]),
    _batch_fault("one id twice", lambda answers: [*answers[:-1], answers[0]]),
    _batch_fault("one too many", lambda answers: [*answers, answers[0]]),
    _batch_fault("ids exchanged", lambda answers: [
        one | {"id": other["id"]} for one, other in zip(answers, answers[::-1], strict=True)
    ]),
    _batch_fault("a single answer", lambda answers: answers[0]),
    _batch_fault("empty", lambda answers: []),
    _batch_fault("null among the answers", lambda answers: [*answers[:-1], None]),
)  # fmt: skip

OUT_OF_ORDER = _batch_fault("out of order", lambda answers: answers[::-1])
"""JSON-RPC allows it."""

REFUSALS = (
    _batch_fault("a single error", lambda answers: {
        "jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "invalid request"},
    }),
    Fault("method not found", error(-32601, "the method does not exist/is not available")),
    Fault("-32000 to everything", error(-32000, "no backend is currently healthy")),
    Fault("HTTP 401", of_reply=lambda *_: Reply(b"", 401)),
    Fault("HTTP 403", of_reply=lambda *_: Reply(b"forbidden", 403)),
    Fault("HTTP 404", of_reply=lambda *_: Reply(b"not found", 404)),
)  # fmt: skip
"""Answers of an endpoint that refuses everybody: a person has to see this, or another one
answers."""


# ---------------------------------------------------------------------- no answer


def limited(*headers: tuple[str, str], status: int = 429) -> Callable[[Any, Reply], Reply]:
    """An HTTP status instead of an answer, with headers."""
    return lambda *_: Reply(b"Too Many Requests", status, headers)


def _http(status: int) -> Fault:
    page = b"<html><body>Bad gateway</body></html>"
    headers = (("Content-Type", "text/html"),)
    return Fault(f"HTTP {status}", of_reply=lambda *_: Reply(page, status, headers))


def _whole(name: str, change: Callable[[Reply], Reply]) -> Fault:
    return Fault(name, of_reply=lambda _, reply: change(reply))


RATE_LIMITS = (
    Fault("429", of_reply=limited()),
    Fault("429, again at once", of_reply=limited(("Retry-After", "0"))),
    Fault("429, again at a date", of_reply=limited(
        ("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"))),
    Fault("429, again never", of_reply=limited(("Retry-After", "never"))),
    Fault("-32005", error(-32005, "rate limit exceeded", data={"see": "https://pay.more"})),
    Fault("code 429", error(429, "Your app has exceeded its compute units per second capacity")),
)  # fmt: skip
RETRY_IN_A_SECOND = Fault("429, again in a second", of_reply=limited(("Retry-After", "1")))

ABSENT = (
    *(_http(status) for status in (500, 502, 503, 504, 520)),
    Fault("reset", of_reply=lambda *_: Reply(b"", resets=True)),
    Fault("internal error", error(-32603, "internal error")),
    Fault("no such code", error(-1, "upstream connect error")),
    _whole("cut", lambda reply: Reply(reply.body[:-9], length=len(reply.body), stream=())),
    _whole("cut in half, orderly", lambda reply: Reply(reply.body[: len(reply.body) // 2])),
    _whole("chunks cut", lambda reply: Reply(reply.body[:-9], stream=_broken_stream())),
    _whole("empty", lambda reply: Reply(b"")),
    _whole("a web page with status 200", lambda reply: Reply(b"<html>login</html>")),
    _whole("a byte order mark", lambda reply: Reply(b"\xff\xfe" + reply.body)),
    _whole("a brace too few", lambda reply: Reply(reply.body.rstrip()[:-1])),
    _whole("NaN", lambda reply: Reply(b'{"jsonrpc":"2.0","id":1,"result":NaN}')),
    _whole("ten thousand brackets", lambda reply: Reply(b"[" * 10_000)),
    _whole("null", lambda reply: Reply(b"null")),
    _whole("a number", lambda reply: Reply(b"7")),
    _whole("not gzip", lambda reply: Reply(reply.body, headers=(("Content-Encoding", "gzip"),))),
)

HANG = Fault("hang", of_reply=lambda *_: Reply(b"", stalls=True))
DRIP = _whole("one byte now and then", lambda reply: Reply(b" ", stream=_drip(), length=10**6))


def _broken_stream() -> Iterator[bytes]:
    yield b" "
    raise ConnectionResetError


def _drip() -> Iterator[bytes]:
    for _ in range(10**4):
        time.sleep(0.05)
        yield b" "


# ----------------------------------------------------------------------- gigantic


def _padding() -> Iterator[bytes]:
    block = b'"' + b"0" * (2**20 - 3) + b'",'
    for _ in range(GIGANTIC_BYTES // len(block)):
        yield block


@cache
def _bomb() -> bytes:
    return gzip.compress(b'{"result":[' + b" " * (GIGANTIC_BYTES // 4), 1)


_BEGINNING = b'{"jsonrpc":"2.0","id":1,"result":['


def _bombed(_: Any, __: Reply) -> Reply:
    return Reply(_bomb(), headers=(("Content-Encoding", "gzip"),))


GIGANTIC = (
    _whole("gigantic, in chunks", lambda reply: Reply(_BEGINNING, stream=_padding())),
    _whole(
        "gigantic, announced",
        lambda reply: Reply(_BEGINNING, stream=_padding(), length=GIGANTIC_BYTES),
    ),
    Fault("gigantic when unpacked", of_reply=_bombed),
)

BROKEN = (*SHAPELESS_ANSWERS, *BATCH_FAULTS, *ABSENT, *RATE_LIMITS)
"""All that cost no time by themselves."""
