from typing import Any

import pytest

from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointUnavailable,
    InconsistentAnswer,
    RangeRefused,
    RateLimited,
)
from support.endpoints.endpoint_reads import (
    chain_id,
    error_of,
    logs,
    logs_in_a_batch,
    logs_of_one_block,
)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_read__sent_elsewhere__is_no_answer_and_says_so(status: int) -> None:
    error = error_of(chain_id, (status, {"Location": "http://elsewhere.test/"}, b"x" * 100_000))

    assert type(error) is EndpointUnavailable
    assert error.got == f"HTTP {status}"


@pytest.mark.parametrize("status", [401, 402, 403, 407])
def test_read__not_let_in__is_for_a_person(status: int) -> None:
    assert type(error_of(chain_id, (status, {}, b""))) is AccessRefused


@pytest.mark.parametrize("status", [404, 405, 406, 409, 410, 411, 421, 425, 431, 451, 499])
@pytest.mark.parametrize("read", [chain_id, logs, logs_of_one_block])
def test_read__status_of_a_balancer_that_is_deployed__is_no_answer(read: Any, status: int) -> None:
    error = error_of(read, (status, {}, b"<html>no backend</html>"))

    assert type(error) is EndpointUnavailable
    assert error.got == f"HTTP {status}"


RANGE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "max block range 2"}}
LIMIT = {"id": None, "error": {"code": -32005, "message": "Too many requests, retry in 3 s"}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, RANGE, RangeRefused),
        (403, RANGE, RangeRefused),
        (413, RANGE, RangeRefused),
        (500, RANGE, RangeRefused),
        (400, [RANGE], RangeRefused),
        (400, b"range too large", RangeRefused),
        (400, b"", RangeRefused),
        (413, b"<html>413 Request Entity Too Large</html>", RangeRefused),
        (408, b"", RangeRefused),
        (504, b"<html>Gateway Time-out</html>", RangeRefused),
        (524, b"", RangeRefused),
        (400, LIMIT, RateLimited),
        (403, LIMIT, RateLimited),
        (503, LIMIT, RateLimited),
        (429, RANGE, RateLimited),
        (400, {"error": {"code": -32000, "message": "header not found"}}, InconsistentAnswer),
        (401, b"", AccessRefused),
        (403, b"<html>block range</html>", AccessRefused),
        (404, {"error": {"code": -32000, "message": "no such key"}}, EndpointUnavailable),
        (500, b"", EndpointUnavailable),
        (502, b"<html>range</html>", EndpointUnavailable),
        (503, {"error": "overloaded"}, EndpointUnavailable),
    ],
    ids=repr,
)
@pytest.mark.parametrize("read", [logs, logs_in_a_batch])
def test_read_logs__refused_by_http__is_sorted_by_status_and_words(
    read: Any, status: int, body: Any, kind: type[ChainError]
) -> None:
    assert type(error_of(read, (status, {}, body))) is kind


@pytest.mark.parametrize("status", [400, 413, 504])
def test_read_logs__of_one_block_refused_by_http__is_no_answer(status: int) -> None:
    assert type(error_of(logs_of_one_block, (status, {}, RANGE))) is EndpointUnavailable


def test_read__rate_limit_in_the_body_of_another_status__says_how_long_to_wait() -> None:
    for headers_, seconds in (({}, 3), ({"Retry-After": "9"}, 9)):
        error = error_of(chain_id, (503, headers_, LIMIT))

        assert isinstance(error, RateLimited)
        assert error.retry_after == seconds
