from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import eth_abi
import pytest
from eth_abi.exceptions import DecodingError
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedLog
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    NODE_UPDATED_TOPIC,
    decode_node_updated,
    decode_payload_event,
)
from chainkit.protocol.payload_contract import EventLayout, PayloadContract
from chainkit.types import Log, Node, PayloadEvent, TopicKind, identity_update_created, message_sent
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
        assert event == message_sent(group_id, message, int(fields["sequenceId"]))
    else:
        inbox_id, update = from_hex(fields["inboxId"]), from_hex(fields["update"])
        assert event == identity_update_created(inbox_id, update, int(fields["sequenceId"]))


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

    assert decode_payload_event(log_of(data, MESSAGE_SENT_TOPIC)) == message_sent(*arguments)
    assert decode_payload_event(
        log_of(data, IDENTITY_UPDATE_CREATED_TOPIC)
    ) == identity_update_created(*arguments)


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


# ------------------------------------------------------------------ other forms of the events

LAYOUTS = [EventLayout(*form) for form in product((16, 32), (False, True), (False, True))]
BY_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def contract_of(layout: EventLayout, kind: TopicKind = TopicKind.GROUP_MESSAGE) -> PayloadContract:
    return PayloadContract("GroupMessages", bytes(20), 7, kind, 3, layout)


@dataclass(frozen=True)
class Encoding:
    """Which arguments stand in topics and which in the data, as eth_abi takes them."""

    layout: EventLayout

    @property
    def arguments(self) -> list[tuple[str, bool]]:
        identifier = f"bytes{self.layout.identifier_length}"
        return [
            (identifier, self.layout.is_identifier_indexed),
            ("bytes", False),
            ("uint64", self.layout.is_sequence_indexed),
        ]

    @property
    def types(self) -> list[str]:
        return [kind for kind, is_indexed in self.arguments if not is_indexed]

    def log(self, topic: bytes, values: tuple[bytes, bytes, int]) -> Log:
        topics, data = [topic], []
        for (kind, is_indexed), value in zip(self.arguments, values, strict=True):
            if is_indexed:
                topics.append(eth_abi.encode([kind], [value]))
            else:
                data.append(value)
        return log_of(eth_abi.encode(self.types, data), *topics)

    def decoded(self, log: Log) -> tuple[bytes, bytes, int] | None:
        """The values that eth_abi reads from a log, if the log is their one encoding."""
        topics, data = list(log.topics[1:]), []
        values: list[Any] = []
        with suppress(DecodingError, OverflowError):
            data = list(eth_abi.decode(self.types, log.data, strict=True))
            for kind, is_indexed in self.arguments:
                if is_indexed:
                    values.extend(eth_abi.decode([kind], topics.pop(0), strict=True))
                else:
                    values.append(data.pop(0))
            found = values[0], values[1], values[2]
            return found if self.log(log.topics[0], found) == log else None
        return None


def decoded(log: Log, contract: PayloadContract) -> PayloadEvent | None:
    try:
        return decode_payload_event(log, contract)
    except MalformedLog:
        return None


@st.composite
def values_of(draw: st.DrawFn, layout: EventLayout) -> tuple[bytes, bytes, int]:
    length = layout.identifier_length
    identifier = draw(st.binary(min_size=length, max_size=length))
    return identifier, draw(st.binary(max_size=100)), draw(st.integers(0, 2**64 - 1))


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes cut, with a byte changed, a word replaced, or others put in."""
    position = draw(st.integers(0, len(whole)))
    if draw(st.booleans()):
        start = position - position % 32
        return whole[:start] + draw(words) + whole[start + 32 :]
    replaced = draw(st.integers(0, 33))
    return whole[:position] + draw(st.binary(max_size=33)) + whole[position + replaced :]


@BY_LAYOUT
@given(st.data(), st.sampled_from([TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE]))
def test_decode_payload_event__any_arguments_in_any_form__gives_them_back(
    layout: EventLayout, data: st.DataObject, kind: TopicKind
) -> None:
    values = data.draw(values_of(layout))
    contract = contract_of(layout, kind)

    event = decode_payload_event(Encoding(layout).log(contract.topic, values), contract)

    assert (event.identifier, event.payload, event.sequence_id) == values
    assert (event.kind, event.originator_id) == (kind, 3)


@BY_LAYOUT
@given(st.data())
def test_decode_payload_event__damaged_log__is_taken_only_if_it_is_the_one_encoding(
    layout: EventLayout, data: st.DataObject
) -> None:
    contract, encoding = contract_of(layout), Encoding(layout)
    whole = encoding.log(contract.topic, data.draw(values_of(layout)))
    changed = data.draw(damaged(whole.data) | word_data | st.just(whole.data))
    indexed = [data.draw(st.just(topic) | words | damaged(topic)) for topic in whole.topics[1:]]
    log = log_of(changed, contract.topic, *indexed)

    event = decoded(log, contract)

    found = event and (event.identifier, event.payload, event.sequence_id)
    assert found == encoding.decoded(log)


@BY_LAYOUT
def test_decode_payload_event__any_byte_of_it_changed__is_another_event_or_none(
    layout: EventLayout,
) -> None:
    contract, encoding = contract_of(layout), Encoding(layout)
    values = (b"g" * layout.identifier_length, b"p" * 33, 2**63 + 1)
    whole = encoding.log(contract.topic, values)
    event = decode_payload_event(whole, contract)
    parts = [*whole.topics[1:], whole.data]
    refused = 0
    for number, part in enumerate(parts):
        for position, change in product(range(len(part)), (0x01, 0x80, 0xFF)):
            damage = bytearray(part)
            damage[position] ^= change
            *topics, data = [*parts[:number], bytes(damage), *parts[number + 1 :]]
            found = decoded(log := log_of(data, contract.topic, *topics), contract)
            assert found != event
            assert (found is None) == (encoding.decoded(log) is None)
            refused += found is None
    paddings = (32 - layout.identifier_length) + 24 + 32 + 32 + 31
    assert refused == 3 * paddings


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda data: data + bytes(32), id="a word behind the end"),
        pytest.param(lambda data: data[:-32] + bytes(32) + data[-32:], id="a payload further on"),
        pytest.param(lambda data: data[:-31], id="a payload that is not padded"),
    ],
)
def test_decode_payload_event__encoding_that_no_contract_emits__is_refused(data: Any) -> None:
    contract = contract_of(EventLayout(16, True, True))
    log = Encoding(contract.layout).log(contract.topic, (b"g" * 16, b"p", 1))

    with pytest.raises(MalformedLog) as caught:
        decode_payload_event(log._replace(data=data(log.data)), contract)

    expected = "log data: expected (bytes16 indexed,bytes,uint64 indexed), got topics 0x6767"
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("number", [1, 2], ids=["identifier", "sequence id"])
@pytest.mark.parametrize("change", [lambda topic: topic[:-1], lambda topic: b"\0" + topic])
@pytest.mark.parametrize("length", [16, 32])
def test_decode_payload_event__topic_that_is_no_word__is_refused(
    number: int, change: Any, length: int
) -> None:
    contract = contract_of(EventLayout(length, True, True))
    log = Encoding(contract.layout).log(contract.topic, (b"\0" * length, b"p", 256))
    topics = [change(topic) if at == number else topic for at, topic in enumerate(log.topics)]

    assert decoded(log, contract) is not None
    assert decoded(log_of(log.data, *topics), contract) is None


def test_decode_payload_event__large_data__is_not_shown_whole() -> None:
    log = log_of(b"\xab" * 5000, MESSAGE_SENT_TOPIC)

    with pytest.raises(MalformedLog, match=r"data 0x(ab){128}… \(5000 bytes\)"):
        decode_payload_event(log)


@pytest.mark.parametrize("form", [form for form in LAYOUTS if form.topic_count > 1], ids=str)
def test_decode_payload_event__number_of_topics_of_another_form__is_refused(
    form: EventLayout,
) -> None:
    contract = contract_of(form)

    with pytest.raises(MalformedLog, match=rf"expected {form.topic_count} topics, got 1 "):
        decode_payload_event(log_of(b"", contract.topic), contract)


def test_decode_payload_event__event_of_another_kind__is_refused() -> None:
    contract = contract_of(EventLayout(), TopicKind.IDENTITY_UPDATE)

    with pytest.raises(MalformedLog, match="expected IdentityUpdateCreated, got topic 0x"):
        decode_payload_event(log_of(b"", MESSAGE_SENT_TOPIC), contract)
