"""The bytes inside of messages and welcomes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit_client.groups.plaintext import Plaintext, message_id, parse_plaintext
from chainkit_client.groups.welcome import Welcome, parse_welcome

authenticators = st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=4)
integers = st.integers(0, 2**63 - 1)


@given(integers, integers, authenticators, st.binary(max_size=100))
def test_parse_plaintext__what_was_encoded__is_the_same(
    time_ns: int, epoch: int, told: list[bytes], content: bytes
) -> None:
    plaintext = Plaintext(time_ns, epoch, tuple(told), content)

    assert parse_plaintext(plaintext.encoded()) == plaintext


@given(st.binary(max_size=200))
def test_parse_plaintext__any_bytes__are_read_or_refused(data: bytes) -> None:
    try:
        plaintext = parse_plaintext(data)
    except MalformedData:
        return
    assert plaintext.encoded() == data


@pytest.mark.parametrize("length", [0, 1, 17, 18, 49])
def test_parse_plaintext__cut_off__is_refused(length: int) -> None:
    whole = Plaintext(1, 2, (b"a" * 32,), b"").encoded()

    with pytest.raises(MalformedData):
        parse_plaintext(whole[:length])


@pytest.mark.parametrize("count", [0, 5])
def test_parse_plaintext__no_history_or_too_much__is_refused(count: int) -> None:
    whole = bytearray(Plaintext(1, 2, (b"a" * 32,), b"c" * 200).encoded())
    whole[17] = count

    with pytest.raises(MalformedData, match="1 to 4 authenticators"):
        parse_plaintext(bytes(whole))


@pytest.mark.conforms("R11")
def test_message_id__content_group_and_time__is_sha256_of_all_three() -> None:
    expected = hashlib.sha256(b"words" + b"g" * 16 + (5).to_bytes(8, "big")).digest()

    assert message_id(b"words", b"g" * 16, 5) == expected


@given(st.none() | st.binary(min_size=32, max_size=32), st.binary(max_size=100))
def test_parse_welcome__what_was_encoded__is_the_same(
    commit_hash: bytes | None, mls: bytes
) -> None:
    welcome = Welcome(commit_hash, mls)

    assert parse_welcome(welcome.encoded()) == welcome


@pytest.mark.parametrize("data", [b"", b"\1", b"\2\0rest", b"\1\x1f" + b"h" * 40, b"\1\x20short"])
def test_parse_welcome__other_bytes__are_refused(data: bytes) -> None:
    with pytest.raises(MalformedData):
        parse_welcome(data)
