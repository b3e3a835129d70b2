"""The HTTP paths of XIP-49, and gRPC-Web, at a node's own address."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
import requests
from google.protobuf.json_format import MessageToDict, ParseDict

from chainkit.protocol.proto import envelopes_pb2, message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import TopicKind
from localnet.network import Network
from support import publishes
from support.network.api import REPLICATION, Api
from support.reporting import slow

CHANCE = random.Random(17)


def post(network: Network, path: str, content: Any) -> requests.Response:
    return requests.post(f"{network.node_url}/mls/v2/{path}", json=content, timeout=30)


def payer_envelope(client_envelope: bytes) -> dict[str, Any]:
    paid = envelopes_pb2.PayerEnvelope.FromString(publishes.paid(client_envelope))
    return MessageToDict(paid)


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.conforms("N20")
def test_http__publish_and_query__answer_what_grpc_answers(network: Network, node: Api) -> None:
    key = CHANCE.randbytes(32)
    topic = TopicKind.WELCOME.topic(key)

    published = post(
        network,
        "publish-payer-envelopes",
        {"payerEnvelopes": [payer_envelope(publishes.welcome(key))]},
    )
    queried = post(network, "query-envelopes", {"query": {"topics": [in_base64(topic)]}})

    assert (published.status_code, queried.status_code) == (200, 200)
    [envelope] = published.json()["originatorEnvelopes"]
    assert queried.json() == {"envelopes": [envelope]}
    parsed = ParseDict(envelope, envelopes_pb2.OriginatorEnvelope())
    assert node.query(topics=[topic]) == [parsed.SerializeToString()]


@pytest.mark.conforms("N13")
def test_http__publish_that_depends_on_the_future__is_409_with_the_cursor(
    network: Network,
) -> None:
    message = publishes.group_message(seen={network.node_id: 10**9})

    refused = post(
        network, "publish-payer-envelopes", {"payerEnvelopes": [payer_envelope(message)]}
    )

    assert refused.status_code == 409
    [detail] = refused.json()["details"]
    assert detail["@type"] == "type.googleapis.com/xmtp.xmtpv4.envelopes.Cursor"
    assert "nodeIdToSequenceId" in detail


@pytest.mark.conforms("N52")
def test_http__report_of_a_client__is_stored_and_answered(network: Network) -> None:
    written = slow(CHANCE.getrandbits(32), network.node_id)
    report = message_api_pb2.UnsignedMisbehaviorReport.FromString(written)

    submitted = post(network, "submit-misbehavior-report", {"report": MessageToDict(report)})
    queried = post(network, "query-misbehavior-reports", {"afterNs": "0"})

    assert (submitted.status_code, submitted.json()) == (200, {})
    found = [each["unsignedMisbehaviorReport"] for each in queried.json()["reports"]]
    assert in_base64(written) in found
    report.submitted_by_node = True
    refused = post(network, "submit-misbehavior-report", {"report": MessageToDict(report)})
    assert refused.status_code == 400


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        ("query-envelopes", {"query": {}}, 400),
        ("query-envelopes", {"query": {"topics": [{}]}}, 400),
        ("get-inbox-ids", {"requests": [{"identifier": "0x" + "12" * 20}]}, 200),
        ("no-such-method", {}, 404),
    ],
)
def test_http__other_requests__get_the_code_that_fits(
    network: Network, path: str, content: Any, code: int
) -> None:
    assert post(network, path, content).status_code == code


def test_grpc_web__query__answers_frames_and_trailers_to_a_browser(
    network: Network, node: Api
) -> None:
    key = CHANCE.randbytes(32)
    stored = node.publish(publishes.paid(publishes.welcome(key)))
    query = message_api_pb2.EnvelopesQuery(topics=[TopicKind.WELCOME.topic(key)])
    message = message_api_pb2.QueryEnvelopesRequest(query=query).SerializeToString()

    answer = requests.post(
        f"{network.node_url}/{REPLICATION}/QueryEnvelopes",
        data=b"\0" + len(message).to_bytes(4, "big") + message,
        headers={
            "content-type": "application/grpc-web+proto",
            "x-grpc-web": "1",
            "origin": "https://app.example",
        },
        timeout=30,
    )

    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    length = int.from_bytes(answer.content[1:5], "big")
    assert list(Envelopes.FromString(answer.content[5 : 5 + length]).envelopes) == stored
    trailers = answer.content[5 + length :]
    assert trailers[0] == 0x80 and b"grpc-status:0" in trailers


@pytest.mark.parametrize("name", ["x-app-version", "x-libxmtp-version", "authorization"])
def test_grpc_web__header_of_todays_browser_sdk__is_allowed_to_a_page(
    network: Network, name: str
) -> None:
    answer = requests.options(
        f"{network.node_url}/{REPLICATION}/QueryEnvelopes",
        headers={
            "origin": "https://app.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": name,
        },
        timeout=30,
    )

    assert name in answer.headers["access-control-allow-headers"].split(", ")
