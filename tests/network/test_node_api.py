"""A node's methods over gRPC: what they answer, and how they refuse."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.log_ranges import LogRange, RangeContent, envelope_digest
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    parse_originated,
    recover_originator,
)
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.topic_heads import Chain, entry_of, read_topic_head
from chainkit.types import TopicKind
from localnet.anvil import Anvil
from localnet.network import Network
from support import mls, publishes
from support.network.api import LOG, REPLICATION, Api, cursor_in

PACKAGE = "xmtp.xmtpv4.message_api"
CHANCE = random.Random(5)
Refused = grpc.RpcError


@pytest.fixture
def gateway(network: Network) -> Iterator[Api]:
    api = Api(network.gateway_url)
    yield api
    api.close()


def installation() -> bytes:
    """A key that no other test uses."""
    return CHANCE.randbytes(32)


def welcome(key: bytes) -> bytes:
    return publishes.paid(publishes.welcome(key))


def message(group_id: bytes, seen: dict[int, int] | None = None) -> bytes:
    target = publishes.NODE_ID
    return publishes.paid(publishes.group_message(identifier=group_id, seen=seen, target=target))


def commit(group_id: bytes, epoch: int = 1) -> bytes:
    """A commit of a group, as a client has a gateway publish it."""
    return publishes.group_message(mls.private_message(group_id, mls.COMMIT, epoch), group_id)


def parsed(envelope: bytes) -> OriginatedEnvelope:
    return parse_originated(envelope).envelope


def signer_of(envelope: bytes) -> bytes:
    return recover_originator(parse_originated(envelope))


def payload_of(envelope: bytes) -> bytes:
    """The client's bytes in an envelope of the chain."""
    return parse_originator_envelope(envelope).client_envelope


def refusal(call: Callable[[], object]) -> Any:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value


def welcome_of(length: int) -> bytes:
    """A payer's welcome whose ClientEnvelope has so many bytes."""
    key = installation()
    rest = len(publishes.welcome(key, data=bytes(length))) - length
    client_envelope = publishes.welcome(key, data=bytes(length - rest))
    assert len(client_envelope) == length
    return publishes.paid(client_envelope)


def test_publish__largest_payload__reaches_readers_with_grpcs_own_limit(
    node: Api, network: Network
) -> None:
    after = node.ranges(network.node_id)[0]
    stream = node.subscribe(originators=[network.node_id], cursor={network.node_id: after})
    assert stream.first_frame() == b""

    [envelope] = node.publish(welcome_of(4_000_000))
    [next_one] = node.publish(welcome(installation()))

    assert stream.take(2) == [envelope, next_one]


def test_publish__payload_that_others_may_not_receive__is_refused_with_the_bound(
    node: Api,
) -> None:
    refused = refusal(lambda: node.publish(welcome_of(4_194_304 - 64)))

    assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "payer envelope: expected at most 4001024 bytes, got 4194" in refused.details()


@pytest.mark.conforms("N6", "N22")
def test_publish__welcomes__are_answered_stored_and_streamed_as_the_same_bytes(
    node: Api, network: Network
) -> None:
    key = installation()
    topic = TopicKind.WELCOME.topic(key)
    stream = node.subscribe(topics=[topic])
    assert stream.first_frame() == b""

    sent = [welcome(key), welcome(key)]
    answered = node.publish(*sent)

    assert [parsed(each).payer_envelope for each in answered] == sent
    last = parsed(answered[-1])
    assert (last.originator_id, last.sequence_id) == (
        network.node_id,
        parsed(answered[0]).sequence_id + 1,
    )
    assert node.query(topics=[topic]) == answered
    behind = {network.node_id: parsed(answered[0]).sequence_id - 1}
    assert node.query(originators=[network.node_id], cursor=behind) == answered
    assert node.newest(topic, TopicKind.WELCOME.topic(installation())) == [answered[-1], b""]
    assert stream.take(2) == answered
    stream.close()


def test_query__cursor__is_exclusive_and_a_missing_entry_is_0(node: Api, network: Network) -> None:
    key = installation()
    topics = [TopicKind.WELCOME.topic(key)]
    answered = node.publish(*[welcome(key)] * 3)
    first = parsed(answered[0]).sequence_id

    assert node.query(topics=topics, cursor={network.node_id: first}) == answered[1:]
    assert node.query(topics=topics, cursor={0: 10**9, 300: 5}) == answered
    assert node.query(topics=topics, limit=2) == answered[:2]
    assert node.query(topics=topics, cursor={network.node_id: 2**64 - 1}) == []


@pytest.mark.conforms("N21")
@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            {"topics": [b"\1a"], "originators": [1]},
            "expected topics or originator_node_ids, got both",
        ),
        ({}, "expected topics or originator_node_ids, got neither"),
        ({"topics": [b""]}, "topic: expected 1 to 64 bytes, got 0 bytes"),
        ({"topics": [bytes(65)]}, "topic: expected 1 to 64 bytes, got 65 bytes"),
    ],
)
def test_query__not_one_that_can_be_answered__says_what_was_expected(
    node: Api, wanted: dict[str, Any], words: str
) -> None:
    for call in (lambda: node.query(**wanted), lambda: node.subscribe(**wanted).first_frame()):
        error = refusal(call)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert words in error.details()


@pytest.mark.conforms("N3", "N4", "N19")
@pytest.mark.parametrize(
    ("payer_envelope", "words"),
    [
        (b"\xff\xff", "PayerEnvelope: expected what all readers read alike, got bytes that are no"),
        (
            publishes.paid(publishes.welcome() + b"\x0a\0"),
            "ClientEnvelope.aad: expected what all readers read alike, got a second value",
        ),
        (publishes.paid(publishes.welcome(), target=200), "expected 100, got 200"),
        (
            publishes.paid(publishes.welcome(b"k" * 32, b"l" * 32)),
            "installation key of the welcome",
        ),
        (publishes.paid(publishes.identity_update()), "a gateway posts it to the chain"),
        (publishes.paid(publishes.welcome(), retention_days=366), "expected 1 to 365 days"),
        (
            publishes.with_other_days(publishes.paid(publishes.welcome()), 365),
            "signature of the retention: expected the payer's, over the days, got another",
        ),
    ],
)
def test_publish__one_of_several_breaks_a_rule__names_it_and_stores_none(
    node: Api, payer_envelope: bytes, words: str
) -> None:
    key = installation()

    error = refusal(lambda: node.publish(welcome(key), payer_envelope))

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert words in error.details()
    assert node.query(topics=[TopicKind.WELCOME.topic(key)]) == []


@pytest.mark.conforms("N13", "N17")
def test_publish__depends_on_what_the_node_has_not_seen__aborts_with_its_cursor(
    node: Api, network: Network
) -> None:
    group_id = installation()[:16]
    answered = node.publish(message(group_id))

    error = refusal(lambda: node.publish(message(group_id, {network.node_id: 10**9})))

    assert error.code() is grpc.StatusCode.ABORTED
    assert cursor_in(error)[network.node_id] == parsed(answered[0]).sequence_id


@pytest.mark.conforms("N14")
def test_publish__message_made_before_the_latest_commit__aborts_until_it_names_it(
    node: Api, gateway: Api
) -> None:
    group_id = installation()[:16]
    node.publish(message(group_id))
    gateway.publish_for_clients(commit(group_id))

    error = refusal(lambda: node.publish(message(group_id)))

    assert error.code() is grpc.StatusCode.ABORTED
    latest = cursor_in(error)[0]
    assert len(node.publish(message(group_id, {0: latest}))) == 1


@pytest.mark.conforms("N24")
def test_subscribe_topics__cursor_of_each_topic__gives_what_is_stored_then_what_is_new(
    node: Api, network: Network
) -> None:
    keys = [installation(), installation()]
    topics = [TopicKind.WELCOME.topic(key) for key in keys]
    first, second = (node.publish(welcome(key), welcome(key)) for key in keys)
    cursors = {
        topics[0]: {network.node_id: parsed(first[0]).sequence_id},
        topics[1]: {network.node_id: parsed(second[1]).sequence_id},
    }

    call = node.subscribe_topics(cursors)
    frames = read_until_caught_up(call)
    assert [each.SerializeToString() for each in frames] == [first[1]]

    answered = node.publish(welcome(keys[1]))
    response = message_api_pb2.SubscribeTopicsResponse.FromString(next(call))
    assert [each.SerializeToString() for each in response.envelopes.envelopes] == answered
    call.cancel()


def read_until_caught_up(call: Any) -> list[Any]:
    status = message_api_pb2.SubscribeTopicsResponse
    envelopes: list[Any] = []
    statuses = []
    for frame in call:
        response = status.FromString(frame)
        envelopes += response.envelopes.envelopes
        if response.HasField("status_update"):
            statuses.append(response.status_update.status)
        if statuses[-1:] == [status.SUBSCRIPTION_STATUS_CATCHUP_COMPLETE]:
            break
    assert statuses[0] == status.SUBSCRIPTION_STATUS_STARTED
    return envelopes


def test_server__aliases_health_and_reflection__are_there(node: Api) -> None:
    key = installation()
    answered = node.publish(welcome(key), service=f"{PACKAGE}.PublishApi")

    topics = [TopicKind.WELCOME.topic(key)]
    assert node.query(topics=topics, service=f"{PACKAGE}.QueryApi") == answered
    health = node.call("Check", b"", "grpc.health.v1.Health")
    status = health_pb2.HealthCheckResponse
    assert status.FromString(health).status == status.SERVING
    services = set(ProtoReflectionDescriptorDatabase(node.channel).get_services())
    assert {REPLICATION, f"{PACKAGE}.QueryApi", f"{PACKAGE}.PublishApi"} <= services


def test_compare_ranges__the_nodes_own_envelopes__have_digests_of_what_it_serves(
    node: Api, network: Network
) -> None:
    node.publish(welcome(installation()), welcome(installation()))

    highest, [newest] = node.ranges(network.node_id, LogRange(0, 0))

    served = node.query(originators=[network.node_id])[:64]
    assert [parsed(each).sequence_id for each in served] == list(range(1, min(highest, 64) + 1))
    assert newest == RangeContent(b"".join(map(envelope_digest, served)))
    error = refusal(lambda: node.ranges(0, LogRange(0, 0)))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert LOG in ProtoReflectionDescriptorDatabase(node.channel).get_services()


def test_topic_heads__some_topics__are_signed_and_say_what_the_node_originated(
    node: Api, network: Network
) -> None:
    key, group = installation(), installation()[:16]
    topics = [TopicKind.WELCOME.topic(key), TopicKind.GROUP_MESSAGE.topic(group)]
    first, second = node.publish(welcome(key), message(group)), node.publish(welcome(key))

    read = [read_topic_head(each, signer_of(first[0])) for each in node.heads(*topics)]

    assert [(each.originator_id, each.topic) for each in read] == [
        (network.node_id, topic) for topic in topics
    ]
    assert [each.chain for each in read] == [
        Chain().extended(map(entry_of, [first[0], *second])),
        Chain().extended(map(entry_of, first[1:])),
    ]
    assert {each.through_id for each in read} == {parsed(second[0]).sequence_id}


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ([b""], "topic: expected 1 to 64 bytes"),
        ([b"\1"] * 101, "queries: expected at most 100"),
    ],
    ids=["no topic", "many topics"],
)
def test_topic_heads__request_that_no_client_sends__is_refused(
    node: Api, topics: list[bytes], words: str
) -> None:
    error = refusal(lambda: node.heads(*topics))

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert words in error.details()


def test_server__random_bytes_to_each_method__gets_a_typed_refusal_or_an_honest_answer(
    node: Api,
) -> None:
    methods = ("QueryEnvelopes", "GetNewestEnvelope", "GetInboxIds", "PublishPayerEnvelopes")
    codes = set()
    for _ in range(300):
        method, data = CHANCE.choice(methods), CHANCE.randbytes(CHANCE.randrange(60))
        try:
            node.call(method, data)
        except Refused as error:
            codes.add(error.code())
    assert codes == {grpc.StatusCode.INVALID_ARGUMENT}


def test_subscribe__reorg_takes_back_what_was_sent__ends_with_the_common_ancestor(
    node: Api, gateway: Api, chain: Anvil
) -> None:
    kept, lost = installation()[:16], installation()[:16]
    topics = [TopicKind.GROUP_MESSAGE.topic(each) for each in (kept, lost)]
    stream, other = node.subscribe(topics=topics), node.subscribe(topics=topics[:1])
    gateway.publish_for_clients(commit(kept))
    gateway.publish_for_clients(commit(lost))
    sent = stream.take(2)
    assert other.take(1) == sent[:1]
    before = node.query(topics=topics[:1])

    chain.request("anvil_reorg", 1, [])
    error = refusal(lambda: stream.take(1))

    assert error.code() is grpc.StatusCode.ABORTED
    resumed = node.subscribe(topics=topics, cursor=cursor_in(error))
    assert node.query(topics=topics[:1]) == before == sent[:1]
    # The gateway sends again what the reorg dropped, before anything else.
    [following] = gateway.publish_for_clients(commit(kept, epoch=2))
    again, last = resumed.take(2)
    assert payload_of(again) == payload_of(sent[1])
    assert last == following == other.take(1)[0]
