from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.counter import read_counter
from chainkit.contracts.followed import FollowedRegistry, SequenceCounter
from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointUnavailable,
    RefusedRequest,
    StateRefused,
)
from chainkit.types import BlockReference
from chainkit_indexer.registry.follower import RegistryAdvanced, RegistryFollower
from chainkit_indexer.storage.identity import Identity
from support.chains.fake_chain import FakeChain
from support.council.fake_registry import ADDRESS, HEAD, FakeRegistry, block_hash
from support.endpoints.endpoint_reads import chain_id, error_of, headers, logs, logs_of_one_block
from support.endpoints.fake_endpoint import FakeServer, RpcError
from support.indexer.fake_node import open_store

BLOCK = BlockReference(10, b"\x0b" * 32)
COUNTER = SequenceCounter(b"\xcc" * 20, b"\1\2\3\4", 7)
SAID = "Archive requests require a personal token: KEY-KEY-KEY"


def refusal(message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": message}}


def call(endpoint: Endpoint) -> Any:
    return endpoint.call(bytes(20), b"", BLOCK)


def code(endpoint: Endpoint) -> Any:
    return endpoint.code(bytes(20), BLOCK)


# ------------------------------------------------------------------ one endpoint


@pytest.mark.parametrize("body", [refusal(SAID), SAID.encode(), refusal("no archival state")])
@pytest.mark.parametrize("read", [call, code])
def test_read_state__archive_kept_for_those_who_pay__is_a_refusal_of_this_request(
    read: Any, body: Any
) -> None:
    error = error_of(read, (403, {}, body))

    assert type(error) is StateRefused
    assert str(error.got).startswith("HTTP 403 ")


def test_read_state__refusal_repeats_the_key__is_shown_without() -> None:
    server = FakeServer(*[(403, {}, refusal(SAID))] * 4)

    with pytest.raises(RefusedRequest) as caught:
        call(server.endpoint("http://endpoint.test/v1/KEY-KEY-KEY"))

    assert "KEY-KEY" not in str(caught.value)


@pytest.mark.parametrize(
    ("read", "status", "body"),
    [
        (call, 403, refusal("invalid key")),
        (call, 403, b""),
        (call, 401, refusal(SAID)),
        (chain_id, 403, refusal(SAID)),
        (headers, 403, refusal(SAID)),
        (logs, 403, refusal(SAID)),
        (logs_of_one_block, 403, refusal(SAID)),
    ],
)
def test_read__refused_for_anything_else__is_no_access(read: Any, status: int, body: Any) -> None:
    assert type(error_of(read, (status, {}, body))) is AccessRefused


def test_read_counter__archive_kept_for_those_who_pay__is_none() -> None:
    server = FakeServer((403, {}, refusal(SAID)))

    assert read_counter(server.endpoint(), COUNTER, BLOCK) is None


# ------------------------------------------------------------------ the registry's listing


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[RegistryFollower]:
    identity = Identity.of(FakeChain().deployment, b"\x04" + bytes(64))
    store = open_store(tmp_path / "node.db", identity)
    yield RegistryFollower(store, FollowedRegistry(ADDRESS, 1, 31337, block_hash(0)), 2)
    store.close()


def listing_refused(error: RpcError) -> Endpoint:
    fake = FakeRegistry(overrides={"nodeCount": error})
    return fake.endpoint(eth_chainId="0x7a69", eth_getLogs=[])


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (-32000, "missing trie node 0x11 (path )"),
        (-32002, "No state available for block 10 (0x0b0b)"),
        (-32603, "state at block #10 is pruned"),
    ],
)
def test_step__no_state_so_old_in_whatever_code__is_kept_until_it_can_be_proved(
    follower: RegistryFollower, number: int, message: str
) -> None:
    result = follower.step(listing_refused(RpcError(number, message)))

    assert isinstance(result, RegistryAdvanced)
    assert (result.cursor.number, result.is_committed) == (HEAD - 2, False)


@pytest.mark.parametrize(
    ("number", "message", "kind"),
    [(-32603, "internal error", EndpointUnavailable), (-32005, "archive limit", ChainError)],
)
def test_step__listing_fails_otherwise__passes_as_it_is(
    follower: RegistryFollower, number: int, message: str, kind: type[ChainError]
) -> None:
    with pytest.raises(kind):
        follower.step(listing_refused(RpcError(number, message)))
