from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.types import (
    BlockHeader,
    BlockReference,
    Cursor,
    Log,
    Node,
    TopicKind,
    identity_update_created,
    message_sent,
)
from support.vectors import from_hex, load

TOPICS = load("topics")["topics"]
HASH = bytes(range(32))

VALUES = [
    BlockReference(7, HASH),
    BlockHeader(7, HASH, HASH, 1_735_689_600),
    Node(100, b"\4" + bytes(64), "https://node.example", True),
    Cursor({0: 41}),
]
TUPLES = [Log(bytes(20), (HASH,), b"", 7, HASH, HASH, 0, 3), message_sent(HASH, b"message", 42)]

originator_ids = st.integers(0, 2**32 - 1)
sequence_ids = st.integers(0, 2**64 - 1)
cursors = st.dictionaries(originator_ids, sequence_ids, max_size=5).map(Cursor)


@pytest.mark.parametrize("vector", TOPICS, ids=lambda v: f"{v['name']} {v['identifier'][:6]}")
def test_topic__identifier_of_a_vector__is_kind_byte_and_identifier(vector: dict[str, Any]) -> None:
    kind = TopicKind[vector["name"]]

    assert kind == vector["kind"]
    assert kind.topic(from_hex(vector["identifier"])) == from_hex(vector["topic"])


def test_list_topic_kinds__all__are_those_of_the_vectors() -> None:
    assert {kind.name: kind.value for kind in TopicKind} == {
        vector["name"]: vector["kind"] for vector in TOPICS
    }


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_assign__any_field__is_refused(value: Any) -> None:
    for field in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, None)


@pytest.mark.parametrize("value", TUPLES, ids=lambda value: type(value).__name__)
def test_assign__any_field_of_a_tuple__is_refused(value: Any) -> None:
    for name in value._fields:
        with pytest.raises(AttributeError):
            setattr(value, name, None)


def test_print__block_reference__shows_height_and_start_of_the_hash() -> None:
    assert str(BlockReference(1204331, HASH)) == "1204331 0x00010203…"


def test_refer__to_a_header__keeps_height_and_hash() -> None:
    header = BlockHeader(number=7, hash=HASH, parent_hash=bytes(32), timestamp=1)

    assert header.reference == BlockReference(7, HASH)


def test_place__of_a_log__names_block_and_position_in_it() -> None:
    log = Log(bytes(20), (), b"", 1204331, HASH, HASH, transaction_index=5, log_index=3)

    assert log.place == "block 1204331, log 3"
    assert not log.removed


def test_read_event__message_sent__belongs_to_a_group() -> None:
    event = message_sent(HASH, b"message", 42)

    assert (event.kind, event.identifier, event.payload) == (
        TopicKind.GROUP_MESSAGE,
        HASH,
        b"message",
    )


def test_read_event__identity_update_created__belongs_to_an_inbox() -> None:
    event = identity_update_created(HASH, b"update", 43)

    assert (event.kind, event.identifier, event.payload) == (
        TopicKind.IDENTITY_UPDATE,
        HASH,
        b"update",
    )


@pytest.mark.conforms("3.2.2-3")
@given(originator_ids)
def test_read_cursor__originator_never_seen__is_zero(originator_id: int) -> None:
    assert Cursor()[originator_id] == 0
