"""Upload URLs for a gateway's clients."""

from __future__ import annotations

import asyncio
import time

import pytest

from chainkit.protocol.proto.gateway_api_pb2 import GrantUploadRequest, GrantUploadResponse
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import Overloaded
from chainkit.service.upload_grant import read_grant
from chainkit_gateway.clients import Clients, RateLimits
from chainkit_gateway.upload_grants import GRANT_SECONDS, UploadGrants

KEY = bytes(range(32))
NOW = 1_800_000_000.5
ONE, OTHER = Caller("ipv4:192.0.2.1:1000"), Caller("ipv4:192.0.2.2:1000")


@pytest.fixture
def grants() -> UploadGrants:
    clients = Clients(None, RateLimits(), time.monotonic)
    return UploadGrants(KEY, "https://backups.example", clients, lambda: NOW, lambda: 0.0)


def ask(grants: UploadGrants, caller: Caller = ONE) -> GrantUploadResponse:
    request = GrantUploadRequest().SerializeToString()
    return GrantUploadResponse.FromString(asyncio.run(grants.grant_upload(request, caller)))


def test_grant_upload__each__is_another_grant_that_the_service_takes(grants: UploadGrants) -> None:
    found = [ask(grants) for _ in range(2)]

    read = []
    for each in found:
        start, _, text = each.upload_url.partition("?grant=")
        assert start == "https://backups.example/backups"
        read.append(read_grant(KEY, text, NOW))
    assert [each.expires_at for each in read] == [each.expires_at for each in found]
    assert {each.expires_at for each in read} == {int(NOW) + GRANT_SECONDS}
    assert read[0].id != read[1].id


def test_grant_upload__many_of_one_client__are_refused_to_it_alone(grants: UploadGrants) -> None:
    for _ in range(10):
        ask(grants)

    with pytest.raises(Overloaded, match=r"again in 60\.0 s"):
        ask(grants)

    assert ask(grants, OTHER).upload_url
