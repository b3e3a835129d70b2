from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.message import (
    ContentType,
    MessageHeader,
    WireFormat,
    parse_message_header,
)
from chainkit.protocol.proto import envelopes_pb2
from support import mls
from support.damage import damaged
from support.vectors import case_name, from_hex, load

CASES = [case for case in load("todays_clients")["cases"] if case["kind"] == "GROUP_MESSAGE"]
GROUP_ID = b"g" * 16


def message_of(case: dict[str, Any]) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope.FromString(from_hex(case["client_envelope"]))
    return envelope.group_message.v1.data


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_parse__message_of_today_s_client__gives_its_group_and_kind(case: dict[str, Any]) -> None:
    header = parse_message_header(message_of(case))

    assert replace(header, sender_data=b"") == MessageHeader(
        wire_format=WireFormat.PRIVATE_MESSAGE,
        group_id=from_hex(case["topic"])[1:],
        epoch=0 if case["name"] == "first commit" else 1,
        content_type=ContentType.COMMIT if "commit" in case["name"] else ContentType.APPLICATION,
        # Today's clients authenticate nothing.
        authenticated_data=b"",
    )


@pytest.mark.parametrize("content_type", ContentType)
@pytest.mark.parametrize("group_id", [b"", GROUP_ID, bytes(100)], ids=len)
def test_parse__private_message__gives_every_field(
    content_type: ContentType, group_id: bytes
) -> None:
    data = mls.private_message(group_id, content_type, epoch=2**64 - 1)

    assert parse_message_header(data) == MessageHeader(
        WireFormat.PRIVATE_MESSAGE, group_id, 2**64 - 1, content_type, b"authenticated", b"sender"
    )


@pytest.mark.parametrize("content_type", [ContentType.PROPOSAL, ContentType.COMMIT])
@pytest.mark.parametrize("sender", [b"\1\0\0\0\7", b"\2\0\0\0\7", b"\3", b"\4"], ids=bytes.hex)
def test_parse__public_message_of_each_sender__gives_every_field(
    content_type: ContentType, sender: bytes
) -> None:
    data = mls.public_message(GROUP_ID, content_type, sender)

    assert parse_message_header(data) == MessageHeader(
        WireFormat.PUBLIC_MESSAGE, GROUP_ID, 0, content_type, b"authenticated"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\2\0\2", "version 1, got 2 (byte 2)"),
        (
            b"\0\1\0\5",
            "the wire format of a public (1) or a private message (2), got 5 (byte 4)",
        ),
        (mls.private_message(b"", 0), "a content type from 1 to 3, got 0 (byte 14)"),
        (mls.private_message(b"", 4), "a content type from 1 to 3, got 4 (byte 14)"),
        (mls.private_message(b"") + b"x", "the end, got 1 more bytes (byte 237)"),
        (mls.public_message(b"", 2, b"\0"), "a type of sender from 1 to 4, got 0 (byte 14)"),
        (mls.public_message(b"", 2, b"\5"), "a type of sender from 1 to 4, got 5 (byte 14)"),
        (
            mls.public_message(b"", 1, b"\4"),
            "an application message to be private, got a public message (byte 29)",
        ),
    ],
)
def test_parse__message_that_breaks_a_rule__says_which_and_where(data: bytes, message: str) -> None:
    with pytest.raises(MalformedMls) as caught:
        parse_message_header(data)

    assert str(caught.value) == f"mls message: expected {message}"


def test_parse__private_message_cut_anywhere__is_refused() -> None:
    whole = message_of(CASES[1])

    for length in range(len(whole)):
        with pytest.raises(MalformedMls):
            parse_message_header(whole[:length])


@given(
    st.binary(max_size=100)
    | damaged(message_of(CASES[1]))
    | damaged(mls.public_message(GROUP_ID, 3))
)
def test_parse__arbitrary_bytes__gives_a_header_or_malformed_mls(data: bytes) -> None:
    try:
        header = parse_message_header(data)
    except MalformedMls:
        return
    assert header.group_id in data
