"""Topic heads: one hash for all that a node has originated on a topic, signed by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedData, MalformedEnvelope
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.topic_heads import (
    MOST_HEAD_BYTES,
    Chain,
    Entry,
    TopicHead,
    entry_of,
    read_topic_head,
    sign_topic_head,
)
from chainkit.signatures import SigningKey, keccak256
from support.damage import damaged
from support.network.originator import Originator

NODE = Originator()
KEY = NODE.key.public_key
ENTRIES = [Entry(3, b"\3" * 32), Entry(7, b"\7" * 32)]
HEAD = TopicHead(NODE.node_id, b"\0topic", 9, Chain().extended(ENTRIES))
SIGNED = sign_topic_head(HEAD, NODE.key)

ids = st.lists(st.integers(1, 2**63), unique=True).map(sorted)


def entries(numbers: list[int]) -> list[Entry]:
    return [Entry(each, keccak256(each.to_bytes(8, "big"))) for each in numbers]


def test_extended__two_entries__hashes_label_hash_id_and_digest() -> None:
    first = keccak256(b"topic|" + bytes(32) + bytes(7) + b"\3" + b"\3" * 32)
    second = keccak256(b"topic|" + first + bytes(7) + b"\7" + b"\7" * 32)

    assert Chain().extended(ENTRIES) == Chain(2, 7, second)


@given(ids, st.data())
def test_extended__in_two_parts__is_the_same(numbers: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(numbers)))
    all_of_them = entries(numbers)

    assert Chain().extended(all_of_them[:cut]).extended(all_of_them[cut:]) == Chain().extended(
        all_of_them
    )


@given(ids.filter(bool), st.data())
def test_extended__without_one__is_another_hash(numbers: list[int], data: st.DataObject) -> None:
    left_out = data.draw(st.sampled_from(numbers))
    rest = [each for each in numbers if each != left_out]

    assert Chain().extended(entries(rest)).hash != Chain().extended(entries(numbers)).hash


@pytest.mark.parametrize("number", [0, 7, 6, 2**64])
def test_extended__an_id_that_does_not_rise__is_refused(number: int) -> None:
    with pytest.raises(MalformedData, match="above 7"):
        HEAD.chain.extended([Entry(number, bytes(32))])


def test_read_topic_head__signed__has_all_fields() -> None:
    assert read_topic_head(SIGNED, KEY) == HEAD


def test_read_topic_head__of_an_empty_topic__has_no_envelope() -> None:
    empty = replace(HEAD, chain=Chain())

    assert read_topic_head(sign_topic_head(empty, NODE.key), KEY) == empty


def test_read_topic_head__by_another_key__is_refused() -> None:
    with pytest.raises(MalformedData, match="node 100's signature"):
        read_topic_head(sign_topic_head(HEAD, SigningKey(b"\4" * 32)), KEY)


@pytest.mark.parametrize(
    ("chain", "through"),
    [
        (Chain(0, 7, bytes(32)), 9),
        (Chain(0, 0, b"\1" * 32), 9),
        (Chain(8, 7, b"\1" * 32), 9),
        (Chain(2, 7, b"\1" * 32), 6),
        (Chain(2, 7, b"\1" * 31), 9),
    ],
    ids=["last of none", "hash of none", "more than ids", "beyond its end", "short hash"],
)
def test_read_topic_head__that_no_log_has__is_refused(chain: Chain, through: int) -> None:
    signed = sign_topic_head(TopicHead(NODE.node_id, b"\0topic", through, chain), NODE.key)

    with pytest.raises(MalformedData, match="topic head"):
        read_topic_head(signed, KEY)


def test_read_topic_head__large__is_refused_before_it_is_parsed() -> None:
    signed = node_api_pb2.SignedTopicHead.FromString(SIGNED)
    signed.unsigned_topic_head += bytes(MOST_HEAD_BYTES)

    with pytest.raises(MalformedData, match=f"at most {MOST_HEAD_BYTES} bytes"):
        read_topic_head(signed.SerializeToString(), KEY)


@given(damaged(SIGNED))
def test_read_topic_head__damaged__is_refused_or_as_signed(data: bytes) -> None:
    try:
        head = read_topic_head(data, KEY)
    except (MalformedData, InvalidSignature):
        return
    assert head == HEAD


def test_entry_of__an_envelope__is_what_its_originator_signed() -> None:
    envelope = NODE.signed(5)

    assert entry_of(envelope) == Entry(5, NODE.received(envelope).digest)


def test_entry_of__other_bytes__is_refused() -> None:
    with pytest.raises(MalformedEnvelope):
        entry_of(b"\xff")
