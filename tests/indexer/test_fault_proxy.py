from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.chains.chain import LocalChain
from support.endpoints.fault_proxy import Call, Fault, FaultProxy, Reply
from support.endpoints.web_socket_relay import WebSocketFault

from .conftest import publish


@pytest.fixture
def proxy(local_chain: LocalChain) -> Iterator[FaultProxy]:
    with FaultProxy(local_chain.url) as running:
        yield running


def call(method: str, *params: object, number: int = 7) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}


def post(url: str, content: object) -> requests.Response:
    return requests.post(url, json=content, timeout=5)


def empty(_: Call, answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"result": []}


SUBSCRIBE = json.dumps(call("eth_subscribe", "newHeads"))
EMPTY_LOGS = Fault("empty logs", of_call=empty, methods=frozenset({"eth_getLogs"}))
UNAVAILABLE = Fault("503", of_reply=lambda _, reply: Reply(b"", 503))
EVERYTHING = call("eth_getLogs", {"fromBlock": "0x0"})


@pytest.mark.parametrize(
    "request_",
    [
        call("eth_getBlockByNumber", "latest", False),
        call("eth_getLogs", {"fromBlock": "0x0"}),
        call("eth_noSuchMethod"),
        [call("eth_chainId", number=2), call("eth_getBlockByNumber", "0x3", True, number=1)],
    ],
)
def test_forward__no_fault__answers_the_bytes_of_the_chain(
    local_chain: LocalChain, proxy: FaultProxy, request_: object
) -> None:
    publish(local_chain, 2)

    honest, relayed = post(local_chain.url, request_), post(proxy.url, request_)

    assert relayed.content == honest.content
    assert relayed.status_code == honest.status_code
    assert relayed.headers["Content-Type"] == honest.headers["Content-Type"]
    assert not proxy.delivered


def test_arm__twice_in_a_batch__changes_that_element_twice_and_counts(
    local_chain: LocalChain, proxy: FaultProxy
) -> None:
    publish(local_chain, 1)
    batch = [call("eth_chainId", number=1), EVERYTHING | {"id": 2}]
    honest = post(local_chain.url, batch).json()
    proxy.arm(EMPTY_LOGS, times=2)

    answers = [post(proxy.url, batch).json() for _ in range(3)]

    assert honest[1]["result"]
    assert answers == [[honest[0], honest[1] | {"result": []}]] * 2 + [honest]
    assert proxy.delivered == {"empty logs": 2}


def test_arm__honest_answer_is_the_same__is_not_counted(proxy: FaultProxy) -> None:
    proxy.arm(EMPTY_LOGS, times=1)

    assert (
        post(proxy.url, call("eth_getLogs", {"address": "0x" + "77" * 20})).json()["result"] == []
    )
    assert not proxy.delivered


def test_lift__after_a_fault__is_honest_again(proxy: FaultProxy) -> None:
    proxy.arm(UNAVAILABLE)
    assert post(proxy.url, EVERYTHING).status_code == 503

    proxy.lift()

    assert post(proxy.url, EVERYTHING).status_code == 200


def test_refuse_connections__then_accept__is_gone_and_comes_back(proxy: FaultProxy) -> None:
    with requests.Session() as session:
        assert session.post(proxy.url, json=EVERYTHING, timeout=5).ok
        proxy.refuse_connections()
        with pytest.raises(requests.ConnectionError):
            session.post(proxy.url, json=EVERYTHING, timeout=5)
        proxy.accept_connections()
        assert session.post(proxy.url, json=EVERYTHING, timeout=5).ok


@pytest.mark.parametrize("reply", [Reply(b"", resets=True), Reply(b"{", length=100, stream=())])
def test_reply__reset_or_cut__ends_the_connection(proxy: FaultProxy, reply: Reply) -> None:
    proxy.arm(Fault("broken", of_reply=lambda *_: reply))

    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        post(proxy.url, EVERYTHING)


def test_reply__stalls__says_nothing_until_it_is_lifted(proxy: FaultProxy) -> None:
    proxy.arm(Fault("hang", of_reply=lambda *_: Reply(b"", stalls=True)))

    with pytest.raises(requests.ReadTimeout):
        requests.post(proxy.url, json=EVERYTHING, timeout=0.1)


def test_web_socket__no_fault__passes_new_heads_on(
    local_chain: LocalChain, proxy: FaultProxy
) -> None:
    with connect(proxy.web_socket_url) as socket:
        socket.send(SUBSCRIBE)
        subscription = json.loads(socket.recv(5))["result"]
        local_chain.mine()
        head = json.loads(socket.recv(5))["params"]

    assert head["subscription"] == subscription
    assert head["result"]["hash"] == "0x" + local_chain.head().hash.hex()


def test_web_socket__mute__subscribes_and_is_silent(
    local_chain: LocalChain, proxy: FaultProxy
) -> None:
    proxy.web_sockets.fault = WebSocketFault.MUTE
    with connect(proxy.web_socket_url) as socket:
        socket.send(SUBSCRIBE)
        assert "result" in json.loads(socket.recv(5))
        local_chain.mine()
        with pytest.raises(TimeoutError):
            socket.recv(0.2)

    assert proxy.web_sockets.delivered == {WebSocketFault.MUTE: 1}


def test_web_socket__closes__ends_after_the_subscription(proxy: FaultProxy) -> None:
    proxy.web_sockets.fault = WebSocketFault.CLOSES
    with connect(proxy.web_socket_url) as socket:
        socket.send(SUBSCRIBE)
        with pytest.raises(ConnectionClosed):
            socket.recv(5)
