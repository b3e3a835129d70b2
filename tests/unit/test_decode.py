from typing import Any

import eth_abi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.decode import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    NODE_UPDATED_TOPIC,
    decode_node_updated,
    decode_payload_event,
)
from chainkit.errors import MalformedLog
from chainkit.types import IdentityUpdateCreated, Log, MessageSent, Node
from support.vectors import case_name, from_hex, load

EVENTS = {event["name"]: event for event in load("events")["events"]}
TOPICS = {
    "MessageSent": MESSAGE_SENT_TOPIC,
    "IdentityUpdateCreated": IDENTITY_UPDATE_CREATED_TOPIC,
    "NodeUpdated": NODE_UPDATED_TOPIC,
}
PAYLOAD_TYPES = ["bytes32", "bytes", "uint64"]
NODE_TYPES = ["uint256", "(bytes,string,bool)"]

words = st.one_of(
    st.integers(0, 400),
    st.sampled_from([2**63, 2**64 - 1, 2**64, 2**255, 2**256 - 1]),
    st.integers(0, 2**256 - 1),
).map(lambda value: value.to_bytes(32, "big"))
word_data = st.tuples(st.lists(words, max_size=9).map(b"".join), st.binary(max_size=40)).map(
    b"".join
)


def log_of(data: bytes, *topics: bytes) -> Log:
    return Log(bytes(20), topics, data, 1204331, bytes(32), bytes(32), 0, 3)


def cases_of(*names: str) -> list[Any]:
    return [
        pytest.param(name, case, id=f"{name} {case_name(case)}")
        for name in names
        for case in EVENTS[name]["cases"]
    ]


def malformed_of(*names: str) -> list[Any]:
    return [
        pytest.param(name, from_hex(case["data"]), id=f"{name} {case_name(case)}")
        for name in names
        for case in EVENTS[name]["malformed"]
    ]


@pytest.mark.parametrize("name", TOPICS)
def test_hash_event__signature_of_a_vector__is_its_first_topic(name: str) -> None:
    assert TOPICS[name] == from_hex(EVENTS[name]["topic0"])


@pytest.mark.parametrize(("name", "case"), cases_of("MessageSent", "IdentityUpdateCreated"))
def test_decode_payload_event__log_of_a_vector__gives_its_arguments(
    name: str, case: dict[str, Any]
) -> None:
    event = decode_payload_event(log_of(from_hex(case["data"]), TOPICS[name]))

    fields = case["fields"]
    if name == "MessageSent":
        group_id, message = from_hex(fields["groupId"]), from_hex(fields["message"])
        assert event == MessageSent(group_id, message, int(fields["sequenceId"]))
    else:
        inbox_id, update = from_hex(fields["inboxId"]), from_hex(fields["update"])
        assert event == IdentityUpdateCreated(inbox_id, update, int(fields["sequenceId"]))


@pytest.mark.parametrize(("name", "case"), cases_of("NodeUpdated"))
def test_decode_node_updated__log_of_a_vector__gives_the_node(
    name: str, case: dict[str, Any]
) -> None:
    node = decode_node_updated(log_of(from_hex(case["data"]), TOPICS[name]))

    fields = case["fields"]["node"]
    assert node == Node(
        node_id=int(case["fields"]["nodeId"]),
        signing_key=from_hex(fields["signingKeyPub"]),
        http_address=fields["httpAddress"],
        is_enabled=fields["isHealthy"],
    )


@pytest.mark.parametrize(("name", "data"), malformed_of("MessageSent", "IdentityUpdateCreated"))
def test_decode_payload_event__data_no_contract_emits__says_which_log(
    name: str, data: bytes
) -> None:
    with pytest.raises(MalformedLog) as caught:
        decode_payload_event(log_of(data, TOPICS[name]))

    assert str(caught.value).startswith("log data: expected (bytes32,bytes,uint64), got ")
    assert caught.value.place == "block 1204331, log 3"


@pytest.mark.parametrize(("name", "data"), malformed_of("NodeUpdated"))
def test_decode_node_updated__data_no_contract_emits__says_which_log(
    name: str, data: bytes
) -> None:
    with pytest.raises(MalformedLog) as caught:
        decode_node_updated(log_of(data, TOPICS[name]))

    assert str(caught.value).startswith("log data: expected (uint256,(bytes,")
    assert caught.value.place == "block 1204331, log 3"


@pytest.mark.parametrize("decode", [decode_payload_event, decode_node_updated])
@pytest.mark.parametrize("count", [0, 2, 4])
def test_decode__number_of_topics_of_another_event__is_refused(decode: Any, count: int) -> None:
    with pytest.raises(MalformedLog, match=rf"expected 1 topic .*, got {count} \(block 1204331"):
        decode(log_of(b"", *[MESSAGE_SENT_TOPIC] * count))


@pytest.mark.parametrize("topic", [NODE_UPDATED_TOPIC, bytes(32)])
def test_decode_payload_event__topic_of_another_event__is_named(topic: bytes) -> None:
    with pytest.raises(MalformedLog, match=f"expected MessageSent .*, got topic 0x{topic.hex()}"):
        decode_payload_event(log_of(b"", topic))


def test_decode_node_updated__topic_of_another_event__is_named() -> None:
    topic = MESSAGE_SENT_TOPIC

    with pytest.raises(MalformedLog, match=f"expected NodeUpdated, got topic 0x{topic.hex()}"):
        decode_node_updated(log_of(b"", topic))


@given(st.binary(min_size=32, max_size=32), st.binary(), st.integers(0, 2**64 - 1))
def test_decode_payload_event__any_encoded_arguments__gives_them_back(
    identifier: bytes, payload: bytes, sequence_id: int
) -> None:
    arguments = identifier, payload, sequence_id
    data = eth_abi.encode(PAYLOAD_TYPES, arguments)

    assert decode_payload_event(log_of(data, MESSAGE_SENT_TOPIC)) == MessageSent(*arguments)
    assert decode_payload_event(
        log_of(data, IDENTITY_UPDATE_CREATED_TOPIC)
    ) == IdentityUpdateCreated(*arguments)


@given(st.integers(0, 2**256 - 1), st.binary(), st.text(), st.booleans())
def test_decode_node_updated__any_encoded_arguments__gives_them_back(
    node_id: int, signing_key: bytes, http_address: str, is_enabled: bool
) -> None:
    data = eth_abi.encode(NODE_TYPES, [node_id, (signing_key, http_address, is_enabled)])

    assert decode_node_updated(log_of(data, NODE_UPDATED_TOPIC)) == Node(
        node_id, signing_key, http_address, is_enabled
    )


@given(word_data)
def test_decode_payload_event__arbitrary_data__gives_an_event_or_malformed_log(
    data: bytes,
) -> None:
    try:
        event = decode_payload_event(log_of(data, MESSAGE_SENT_TOPIC))
    except MalformedLog:
        return
    assert len(event.identifier) == 32
    assert event.payload in data
    assert event.sequence_id == int.from_bytes(data[64:96], "big")


@given(word_data)
def test_decode_node_updated__arbitrary_data__gives_a_node_or_malformed_log(data: bytes) -> None:
    try:
        node = decode_node_updated(log_of(data, NODE_UPDATED_TOPIC))
    except MalformedLog:
        return
    assert node.node_id == int.from_bytes(data[:32], "big")
    assert node.signing_key in data


def test_decode_node_updated__address_that_is_no_utf_8__keeps_its_bytes() -> None:
    address = b"http://\xff\xfe"
    data = eth_abi.encode(["uint256", "(bytes,bytes,bool)"], [100, (b"key", address, True)])

    node = decode_node_updated(Log(bytes(20), (NODE_UPDATED_TOPIC,), data, 1, bytes(32), b"", 0, 0))

    assert node.http_address.encode("utf-8", "surrogateescape") == address
