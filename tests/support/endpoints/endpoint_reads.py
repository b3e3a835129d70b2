"""Reads of an endpoint, one of each kind, and the error in which one ends."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit.chain import Endpoint
from chainkit.errors import ChainError
from support.endpoints.fake_endpoint import FakeServer


def error_of(read: Any, *responses: Any, **options: Any) -> ChainError:
    server = FakeServer(*[response for response in responses for _ in range(4)])
    with pytest.raises(ChainError) as caught:
        read(server.endpoint(**options))
    return caught.value


def chain_id(endpoint: Endpoint) -> Any:
    return endpoint.chain_id()


def headers(endpoint: Endpoint) -> Any:
    return endpoint.headers([1, 2])


def logs(endpoint: Endpoint) -> Any:
    return endpoint.logs(5, 8, [bytes(20)])


def logs_of_one_block(endpoint: Endpoint) -> Any:
    return endpoint.logs(5, 5, [bytes(20)])


def logs_in_a_batch(endpoint: Endpoint) -> Any:
    query = {"fromBlock": "0x5", "toBlock": "0x8"}
    return endpoint.batch([("eth_getBlockByNumber", ("0x8", False)), ("eth_getLogs", (query,))])
