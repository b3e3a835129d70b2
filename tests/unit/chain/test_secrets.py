import contextlib
import logging
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import requests

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.location import secrets_of, shown
from chainkit.errors import ChainError, ChainkitError, ConfigurationError, InconsistentAnswer
from chainkit.types import BlockReference
from support.endpoints.fake_endpoint import FakeServer

SECRETS = ["alice", "hush-password", "hush-path", "hush-query"]
PATH = "/v2/hush-path?token=hush-query"
LOCATION = f"alice:hush-password@rpc.example:8443{PATH}"
URL = f"https://{LOCATION}"

# Words of urllib3 and requests, with the path as they write it.
REFUSED = (
    "HTTPSConnectionPool(host='rpc.example', port=8443): Max retries exceeded with url: "
    f"{PATH} (Caused by NewConnectionError('[Errno 111] Connection refused'))"
)
RESPONSES: dict[str, Any] = {
    "refused": requests.ConnectionError(REFUSED),
    "timed out": requests.ReadTimeout(f"{URL} timed out"),
    "redirected for ever": requests.TooManyRedirects(f"{URL} redirects"),
    "HTTP 403": (403, {}, b"no"),
    "HTTP 429": (429, {"Retry-After": "0"}, b"slow down"),
    "HTTP 429 without a number": (429, {"Retry-After": "²"}, b""),
    "HTTP error without a response": requests.HTTPError(f"403 for url: {URL}"),
    "HTTP 500": (500, {}, b"broken"),
    "no JSON": (200, {}, b"<html>"),
    "no answer": (200, {}, []),
    "internal error": (200, {}, {"id": 0, "error": {"code": -32603, "message": "broken"}}),
    "refused by JSON-RPC": (200, {}, {"id": 0, "error": {"code": -32000, "message": "no"}}),
    "moved": (308, {"Location": f"{URL}/elsewhere"}, URL.encode()),
    "error page with the path": (400, {}, f"<html>{PATH} is not served</html>".encode()),
    "gateway page with the URL": (504, {}, URL.encode()),
    "key repeated by HTTP": (401, {}, {"error": {"code": -32000, "message": f"no {PATH}"}}),
    "key repeated by a refusal": (
        200,
        {},
        {"id": 0, "error": {"code": -32000, "message": f"key hush-path: {URL} is wide"}},
    ),
    "key repeated escaped": (
        200,
        {},
        {"id": 0, "error": {"code": -32602, "message": "block range: ?token=hush-query"}},
    ),
    "key repeated by a rate limit": (
        200,
        {},
        {"id": 0, "error": {"code": -32005, "message": "hush-path: too many requests"}},
    ),
    "key repeated by a lagging replica": (
        200,
        {},
        {"id": 0, "error": {"code": -32000, "message": "hush-path: header not found"}},
    ),
    "key repeated by who wants to be paid for old state": (
        403,
        {},
        {"id": 0, "error": {"code": -32000, "message": "hush-path: no archive state"}},
    ),
    "too large": (200, {"Content-Length": "9" * 12}, b""),
    "cut": (200, {"Content-Length": "1000"}, b"{}"),
    "not the encoding": (200, {"Content-Encoding": "gzip"}, URL.encode()),
    "another id": (200, {}, f'{{"id": "{URL}", "result": 1}}'.encode()),
}
READS: dict[str, Callable[[Endpoint], Any]] = {
    "request": lambda endpoint: endpoint.chain_id(),
    "batch": lambda endpoint: endpoint.header(7),
    "logs": lambda endpoint: endpoint.logs(5, 8, [bytes(20)]),
    "logs of a block": lambda endpoint: endpoint.logs(5, 5, [bytes(20)]),
    "raw transaction": lambda endpoint: endpoint.raw_transactions([bytes(32)]),
    "state": lambda endpoint: endpoint.code(bytes(20), BlockReference(7, bytes(32))),
}
MALFORMED_URLS = [
    f"wss://{LOCATION}",
    f"htps://{LOCATION}",
    LOCATION,
    f"https://[{LOCATION}",
    f"https://alice:hush-password@rpc.example:hush-port{PATH}",
]


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def error_of(response: Any, read: Callable[[Endpoint], Any]) -> ChainkitError:
    with pytest.raises(ChainkitError) as caught:
        read(FakeServer(*[response] * 4).endpoint(URL))
    return caught.value


def test_print__endpoint_with_a_key_in_its_url__shows_the_host_only() -> None:
    endpoint = Endpoint.connect(URL)

    assert endpoint.name == "https://rpc.example:8443"
    assert secrets_in(f"{endpoint} {endpoint!r} {endpoint.name}") == []


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_read__any_failure__tells_no_secret_of_the_url(response: Any, read: Any) -> None:
    error = error_of(response, read)

    parts = [error.subject, error.expected, error.got, error.place]
    assert secrets_in(f"{error} {error!r} {parts!r} {pickle.dumps(error)!r}") == []


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_log__exception_of_any_failure__tells_no_secret_of_the_url(
    response: Any, read: Any
) -> None:
    error = error_of(response, read)

    assert secrets_in("".join(traceback.format_exception(error))) == []


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_count__any_failure_of_a_pool__tells_no_secret_of_the_url(response: Any) -> None:
    endpoint = FakeServer(*[response] * 4).endpoint(URL)
    pool = EndpointPool([endpoint])

    with pytest.raises(ChainError) as caught:
        endpoint.logs(5, 8, [bytes(20)])
    pool.failed(endpoint, caught.value)

    assert secrets_in(f"{pool!r} {pool.statistics()!r}") == []
    with contextlib.suppress(ChainError):
        pool.choose()


def test_connect_pool__all_out_of_order__tells_no_secret_of_the_urls() -> None:
    def check(endpoint: Endpoint) -> None:
        raise InconsistentAnswer(endpoint.name, "an answer", "none")

    with pytest.raises(ChainError) as caught:
        EndpointPool.connect([URL, URL], check)

    assert secrets_in("".join(traceback.format_exception(caught.value))) == []


def test_show__what_an_endpoint_repeats_of_several_keys__hides_each() -> None:
    secrets = secrets_of("https://user:password%21@h/v2/long-secret/long-secret-2?key=abcdefgh")

    line = shown("long-secret-2 long-secret password! password%21 key=abcdefgh v2 user", secrets)

    assert line == "… … … … … v2 …"


@pytest.mark.parametrize("url", MALFORMED_URLS)
def test_connect__malformed_url__tells_no_secret_of_it(url: str) -> None:
    with pytest.raises(ChainkitError) as caught:
        Endpoint.connect(url)

    assert secrets_in("".join(traceback.format_exception(caught.value))) == []


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("127.0.0.1:8545", "127.0.0.1:8545"),
        ("localhost:8545", "localhost:8545"),
        ("[::1]:8545", "[::1]:8545"),
        (f"rpc.example:8443{PATH}", "rpc.example:8443"),
    ],
)
def test_connect__url_without_its_scheme__says_what_to_write(url: str, place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Endpoint.connect(url)

    expected = "RPC endpoint: expected an http:// or https:// URL"
    assert str(caught.value) == f"{expected}, got {place} (write http://{place})"


def test_connect_pool__second_url_without_its_scheme__says_which_and_what_to_write() -> None:
    with pytest.raises(ConfigurationError) as caught:
        EndpointPool.connect([URL, "localhost:8545"], lambda endpoint: None)

    assert str(caught.value) == (
        "RPC endpoint 2 of 2: expected an http:// or https:// URL, got localhost:8545 "
        "(write http://localhost:8545)"
    )


def test_connect__place_with_a_password__is_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Endpoint.connect("alice:1234@rpc.example:8443")

    assert "1234" not in str(caught.value)


def test_log__every_request_at_debug_level__tells_no_secret_of_the_url(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    endpoint = FakeServer((200, {}, {"id": 0, "result": "0x1"})).endpoint(URL)

    assert endpoint.chain_id() == 1
    assert secrets_in(caplog.text) == []
