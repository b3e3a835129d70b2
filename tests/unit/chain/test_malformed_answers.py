import json
from typing import Any

import pytest

from chainkit.errors import (
    EndpointUnavailable,
    InconsistentAnswer,
    RangeRefused,
    RefusedRequest,
)
from support.endpoints.endpoint_reads import (
    chain_id,
    error_of,
    headers,
    logs,
    logs_in_a_batch,
    logs_of_one_block,
)
from support.endpoints.fake_endpoint import FakeServer


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": 0, "result": "0x',
        b'{"id": 0, "result": NaN}',
        b'{"id": 0, "result": Infinity}',
        b'{"id": 0, "result": 1e999}',
        b"[" * 10_000,
        b"\xff\xfe{}",
        b'"\xed\xa0\x80"',
        b'{"id": 0, "result": 1}{"id": 0, "result": 1}',
        b"null",
        b"1e300",
    ],
    ids=repr,
)
@pytest.mark.parametrize("read", [chain_id, headers, logs, logs_in_a_batch])
def test_read__no_json_rpc__is_inconsistent(read: Any, body: bytes) -> None:
    assert type(error_of(read, (200, {}, body))) is InconsistentAnswer


def test_read__not_the_encoding_it_says__is_no_answer() -> None:
    error = error_of(chain_id, (200, {"Content-Encoding": "gzip"}, b"{}"))

    assert type(error) is EndpointUnavailable


@pytest.mark.parametrize("number", ["18446744073709551616", "1" * 300, "-1e308", "0.5", "true"])
def test_read__number_where_a_string_belongs__is_inconsistent(number: str) -> None:
    body = b'{"id": %d, "result": ' + number.encode() + b"}"
    server = FakeServer(*[(200, {}, lambda call: body % call["id"])] * 4)

    with pytest.raises(InconsistentAnswer, match="well-formed fields"):
        server.endpoint().chain_id()


@pytest.mark.parametrize("wrong", [1, -1, 10**6, "0", 0.5, 1e300, True, {}, None])
def test_read__result_for_another_id__is_inconsistent(wrong: Any) -> None:
    def answer(call: Any) -> bytes:
        shifted = call["id"] + wrong if type(wrong) is int else wrong
        return json.dumps({"id": shifted, "result": "0x1"}).encode()

    assert type(error_of(chain_id, (200, {}, answer))) is InconsistentAnswer


def test_read__result_without_an_id__is_inconsistent() -> None:
    assert type(error_of(chain_id, (200, {}, b'{"result": "0x1"}'))) is InconsistentAnswer


@pytest.mark.parametrize(
    "ids",
    [
        [0, 0],
        [1, 2],
        [0],
        [0, 1, 2],
        [0, None],
        [None, None],
        [0, "1"],
        [0, 1.0],
        [0, True],
        [[], {}],
    ],
    ids=repr,
)
def test_read_batch__ids_other_than_those_of_the_calls__is_inconsistent(ids: list[Any]) -> None:
    def answer(calls: Any) -> list[Any]:
        first = calls[0]["id"]
        return [{"id": first + i if type(i) is int else i, "result": None} for i in ids]

    assert type(error_of(headers, (200, {}, answer))) is InconsistentAnswer


def test_read_batch__one_refused_without_an_id__is_refused() -> None:
    def answer(calls: Any) -> list[Any]:
        refusal = {"id": None, "error": {"code": -32600, "message": "batch too long"}}
        return [{"id": calls[0]["id"], "result": None}, refusal]

    with pytest.raises(RefusedRequest, match="batch too long"):
        headers(FakeServer((200, {}, answer)).endpoint())


@pytest.mark.parametrize(
    "error",
    ["overloaded", [1], 7, True, {}, {"message": None}, {"code": "-32603"}, {"code": 1e300},
     {"code": -32000, "message": {"deep": [1]}, "data": {"x": 1e300}}],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("read", [chain_id, logs, logs_of_one_block])
def test_read__error_of_any_type__is_an_error_of_ours(read: Any, error: Any) -> None:
    kind = type(error_of(read, (200, {}, {"id": 0, "error": error})))

    assert issubclass(kind, EndpointUnavailable | RefusedRequest | RangeRefused)


def test_read__error_data_of_another_type__is_left_out() -> None:
    error = {"code": -32000, "message": "no", "data": {"reason": 7}}

    with pytest.raises(RefusedRequest) as caught:
        FakeServer((200, {}, {"id": 0, "error": error})).endpoint().chain_id()

    assert caught.value.data is None


def test_read__gigantic_error_message__is_shown_in_part() -> None:
    error = {"code": -32000, "message": "x" * 2**20}

    with pytest.raises(RefusedRequest) as caught:
        FakeServer((200, {}, {"id": 0, "error": error})).endpoint().chain_id()

    assert len(str(caught.value)) < 500
