"""A real node and its registry: tokens as today's nodes write them, and a node that is disabled."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import randbytes
from typing import Any

import grpc
import pytest
from eth_keys import keys

from chainkit.protocol.proto.message_api_pb2 import (
    QueryEnvelopesRequest,
    SubscribeEnvelopesRequest,
)
from chainkit.signatures import keccak256
from localnet.accounts import COUNCIL, development_account, write_keystore
from localnet.commands import Settings, run, run_json
from localnet.network import Network, start_node
from support import publishes
from support.network.api import REPLICATION, Api, query

from .conftest import PASSWORD

SECONDS = 30.0
BURST = 5
OTHER_KEY = keys.PrivateKey(b"\x52" * 32)
NOT_REGISTERED = 999_900


@dataclass(frozen=True, slots=True)
class Meeting:
    """A node with low limits for strangers, and another node's entry in the registry."""

    server_id: int
    api: Api
    client_id: int
    key: keys.PrivateKey
    disable_client: Callable[[], object]


@pytest.fixture(scope="module")
def meeting(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Meeting]:
    # After the network's own node, whose id other tests know.
    assert network.node_id == publishes.NODE_ID
    folder = tmp_path_factory.mktemp("authentication")
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    with ExitStack() as stack:
        limits = folder / "limits.json"
        strangers = {"requests_per_second": 1, "request_burst": BURST}
        limits.write_text(json.dumps({"strangers": strangers}))
        options = ("--limits", str(limits))
        server = start_node(stack, settings, folder, owner, folder / "node.db", *options)
        # A new one: the registry takes a key once, and may outlive this fixture.
        key = keys.PrivateKey(randbytes(32))
        client_id = add_node(settings, owner, key)

        def disable() -> None:
            # Exit 2 where it is disabled already.
            arguments = ("registry", "disable", str(client_id), "--broadcast")
            run(settings, *arguments, "--keystore", owner, expected=(0, 2))

        # No later test finds it enabled, even if one of these fails.
        stack.callback(disable)
        api = Api(server.url, is_own_connection=True)
        stack.callback(api.close)
        yield Meeting(server.node_id, api, client_id, key, disable)


def add_node(settings: Settings, owner: Path, key: keys.PrivateKey) -> int:
    public_key = "0x04" + key.public_key.to_bytes().hex()
    holder = development_account(COUNCIL).address
    added = run_json(
        *(settings, "registry", "add", "--public-key", public_key, "--holder", holder),
        *("--http-address", "http://127.0.0.1:9", "--no-check-url"),
        *("--broadcast", "--keystore", owner),
    )
    return int(added["node_id"])


def token(meeting: Meeting, key: keys.PrivateKey | None = None, **changes: object) -> str:
    """A token by another implementation than ours, as today's nodes write it."""
    now = int(time.time())
    claims = {
        "version": "1.2.0",
        "sub": str(meeting.client_id),
        "aud": [str(meeting.server_id)],
        "exp": now + 3600,
        "iat": now,
    }
    parts: Sequence[Any] = ({"alg": "ES256K", "typ": "JWT"}, {**claims, **changes})
    signed = ".".join(encoded(json.dumps(each).encode()) for each in parts)
    signature = (key or meeting.key).sign_msg_hash(keccak256(b"jwt|" + signed.encode()))
    return f"{signed}.{encoded(signature.to_bytes())}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def ask(meeting: Meeting, text: str = "", key: str = "node-authorization") -> grpc.StatusCode:
    """Return the code of a query, made with a token where there is one."""
    request = QueryEnvelopesRequest(query=query(originators=[0])).SerializeToString()
    call = meeting.api.channel.unary_unary(f"/{REPLICATION}/QueryEnvelopes")
    try:
        call(request, timeout=SECONDS, metadata=[(key, text)] if text else None)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()  # type: ignore[attr-defined]
        return code
    return grpc.StatusCode.OK


def code_within_rate(meeting: Meeting, text: str) -> grpc.StatusCode:
    """Return what a token gets: refused ones count for the address, whose burst may be used up."""
    deadline = time.monotonic() + SECONDS
    while (code := ask(meeting, text)) is grpc.StatusCode.RESOURCE_EXHAUSTED:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return code


def wait_until_known(meeting: Meeting) -> None:
    """Wait until the server has followed the registry to the client's entry."""
    deadline = time.monotonic() + SECONDS
    while ask(meeting, token(meeting)) is not grpc.StatusCode.OK:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.conforms("N35", "N42")
def test_registered_node__with_todays_token_or_xip_49s__has_limits_of_its_own(
    meeting: Meeting,
) -> None:
    wait_until_known(meeting)

    strangers = {ask(meeting) for _ in range(BURST + 5)}
    nodes = {ask(meeting, token(meeting)) for _ in range(BURST + 5)}
    bearer = f"Bearer {token(meeting, aud=str(meeting.server_id))}"

    assert grpc.StatusCode.RESOURCE_EXHAUSTED in strangers
    assert nodes == {grpc.StatusCode.OK}
    assert ask(meeting, bearer, "authorization") is grpc.StatusCode.OK


@pytest.mark.conforms("N36", "N38", "N39", "N40")
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"sub": str(NOT_REGISTERED)}, None),
        ({"aud": [str(publishes.NODE_ID)]}, None),
        ({}, OTHER_KEY),
        ({"iat": 1_700_000_000}, None),
        ({"iat": 4_000_000_000, "exp": 4_000_003_600}, None),
    ],
    ids=["unknown", "for another node", "another key", "too old", "from the future"],
)
def test_registered_node__with_another_token__is_refused_and_no_stranger(
    meeting: Meeting, changes: dict[str, Any], key: keys.PrivateKey | None
) -> None:
    wait_until_known(meeting)

    code = code_within_rate(meeting, token(meeting, key, **changes))

    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert code_within_rate(meeting, token(meeting)) is grpc.StatusCode.OK


@pytest.mark.conforms("N37")
def test_registered_node__disabled__loses_its_stream_and_is_refused(meeting: Meeting) -> None:
    wait_until_known(meeting)
    subscribe = meeting.api.channel.unary_stream(f"/{REPLICATION}/SubscribeEnvelopes")
    request = SubscribeEnvelopesRequest(query=query(originators=[0])).SerializeToString()
    stream = subscribe(request, timeout=SECONDS, metadata=[("node-authorization", token(meeting))])
    next(stream)

    meeting.disable_client()

    with pytest.raises(grpc.RpcError) as caught:
        for _ in stream:
            pass
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert f"got node {meeting.client_id}, which is disabled" in str(caught.value.details())
    assert code_within_rate(meeting, token(meeting)) is grpc.StatusCode.UNAUTHENTICATED
