"""Bytes that all readers of protobuf read alike, and each way in which they differ (ADR 54)."""

from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from chainkit.protocol import wire
from chainkit.protocol.proto.envelopes_pb2 import (
    ClientEnvelope,
    Cursor,
    OriginatorEnvelope,
    PayerEnvelope,
    UnsignedOriginatorEnvelope,
)
from chainkit.protocol.proto.identity_associations_pb2 import IdentityUpdate
from chainkit.protocol.strict import (
    MOST_FIELDS,
    Deviation,
    NotStrict,
    check_strict,
    field_bytes,
    without_field,
)
from support import publishes
from support.forms import Form, forms, with_length
from support.vectors import from_hex, load

RECORDED = [
    from_hex(case["update"])
    for inbox in load("identity_updates")["inboxes"]
    for case in inbox["cases"]
]
BY_ES = load("protobuf_es")
INBOX_ID = b"\x1a\x02ab"
TIME = b"\x10\x05"
ACTION = b"\x0a\x00"
PAYLOADS = [
    publishes.group_message(seen={0: 5, 100: 2**64 - 1, 200: 0}),
    publishes.welcome(),
    publishes.key_package(),
    publishes.identity_update(seen={0: 0}),
]


def cursor(entry: bytes) -> bytes:
    """A ClientEnvelope with an entry of a cursor."""
    return with_length(1, with_length(3, with_length(1, entry)))


def update(value: bytes) -> bytes:
    return with_length(5, value)


ENTRY = b"\x08\x05\x10\x07"
DEVIATIONS = {
    "unknown field in an entry": (cursor(ENTRY + b"\x18\x01"), "UNKNOWN_IN_ENTRY", "Entry.unknown"),
    "other wire type": (with_length(1, b"\x0d" + b"\0" * 4), "WRONG_TYPE", "target_originator"),
    "entry of another type": (with_length(1, with_length(3, b"\x08\0")), "WRONG_TYPE", "Cursor."),
    "field twice": (with_length(1, b"\x08\x01\x08\x01"), "REPEATED", "target_originator"),
    "key twice": (cursor(b"\x08\x01" + ENTRY), "REPEATED", "Entry.key"),
    "message twice": (with_length(1, b"") * 2, "REPEATED", "ClientEnvelope.aad"),
    "two of a oneof": (with_length(2, b"") + with_length(3, b""), "REPEATED", "welcome"),
    "padded tag": (with_length(1, b"", tag=6), "LONG_TAG", "ClientEnvelope"),
    "tag beyond 32 bits": (b"\x8a\x80\x80\x80\x10\0", "LONG_TAG", "ClientEnvelope"),
    "padded length": (with_length(1, b"", length=6), "LONG_LENGTH", "aad"),
    "padded length of an unknown": (
        with_length(99, b"", length=6),
        "LONG_LENGTH",
        "ClientEnvelope.unknown",
    ),
    "deep group": (b"\x9b\x06" * 40 + b"\x9c\x06" * 40, "GROUP", "ClientEnvelope.unknown"),
    "group": (b"\x9b\x06\x9c\x06", "GROUP", "ClientEnvelope.unknown"),
    "overlong integer": (cursor(b"\x10" + b"\x80" * 10 + b"\0"), "LONG_INTEGER", "value"),
    "too large": (cursor(b"\x10" + b"\xff" * 9 + b"\x02"), "LONG_INTEGER", "value"),
    "bad text": (update(with_length(3, b"\xff")), "NO_UTF8", "IdentityUpdate.inbox_id"),
    "surrogate": (update(with_length(3, b"\xed\xa0\x80")), "NO_UTF8", "inbox_id"),
    "field 0": (b"\x02\0", "FIELD_0", "ClientEnvelope.unknown"),
    "end of no group": (b"\x9c\x06", "BROKEN", "ClientEnvelope.unknown"),
    "wire type 7": (b"\x0f\x01", "BROKEN", "aad"),
    "integer behind its message": (b"\x0a\x02\x08\x80\x01", "OVERRUN", "Authenticated"),
    "bytes behind their message": (b"\x0a\x02\x12\x01\x98\x06\x01", "OVERRUN", "target_topic"),
    "too many": (with_length(99, b"") * (MOST_FIELDS + 1), "TOO_MANY_FIELDS", "Client"),
}
CUT = {
    "tag": (b"\x8a", "BROKEN", "ClientEnvelope"),
    "length": (b"\x0a", "BROKEN", "ClientEnvelope"),
    "value": (b"\x0a\x03ab", "BROKEN", "aad"),
    "fixed value": (b"\x99\x06" + b"8" * 7, "BROKEN", "ClientEnvelope"),
}


@pytest.mark.parametrize("data", RECORDED)
def test_check_strict__update_of_a_real_client__passes(data: bytes) -> None:
    check_strict(data, IdentityUpdate)


@pytest.mark.parametrize("case", BY_ES["written"], ids=lambda case: case["name"])
def test_check_strict__payload_that_protobuf_es_wrote__passes(case: dict[str, str]) -> None:
    payload = from_hex(case["payload"])

    check_strict(payload, ClientEnvelope)

    assert ClientEnvelope.FromString(payload).HasField("aad")


@pytest.mark.parametrize("case", BY_ES["cursors"], ids=lambda case: case["name"])
def test_check_strict__cursor_that_passes__is_read_alike_by_upb_and_protobuf_es(
    case: dict[str, Any],
) -> None:
    data = from_hex(case["data"])
    refused = {
        "unknown field in an entry": Deviation.UNKNOWN_IN_ENTRY,
        "another wire type": Deviation.WRONG_TYPE,
        "tag of six bytes": Deviation.LONG_TAG,
        "length of six bytes": Deviation.LONG_LENGTH,
        "integer beyond 64 bits": Deviation.LONG_INTEGER,
        "field 0": Deviation.FIELD_0,
        "integer behind its entry": Deviation.OVERRUN,
    }
    if case["name"] in refused:
        with pytest.raises(NotStrict) as caught:
            check_strict(data, Cursor)
        assert caught.value.deviation is refused[case["name"]]
    else:
        check_strict(data, Cursor)
        read = Cursor.FromString(data).node_id_to_sequence_id
        assert {str(key): str(read[key]) for key in read} == case["read"]


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), max_size=8))
def test_check_strict__cursor_in_the_form_of_prost__is_read_as_upb_s(seen: dict[int, int]) -> None:
    # prost leaves zeros out of entries; all others write both fields.
    of_prost = b"".join(
        with_length(1, wire.integer_field(0x08, key) + wire.integer_field(0x10, value))
        for key, value in seen.items()
    )
    of_upb = Cursor(node_id_to_sequence_id=seen).SerializeToString()

    for data in (of_prost, of_upb):
        check_strict(data, Cursor)
        assert dict(Cursor.FromString(data).node_id_to_sequence_id) == seen


@given(st.sampled_from(PAYLOADS), st.randoms())
def test_check_strict__fields_in_any_order_and_unknown_ones__pass(payload, random) -> None:
    unknown = [
        b"\x98\x06\x01",
        with_length(99, b"x"),
        b"\x99\x06" + b"8" * 8,
        b"\x9d\x06" + b"4" * 4,
    ]
    fields = [with_length(n, part) for n in (1, 2, 3, 4, 5) if (part := field_bytes(payload, n))]
    parts = [*fields, *unknown, *unknown]
    random.shuffle(parts)
    data = b"".join(parts)

    check_strict(data, ClientEnvelope)

    assert field_bytes(data, 1) == field_bytes(payload, 1)
    assert without_field(data, 1) == b"".join(part for part in parts if part[0] != 0x0A)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_check_strict__each_field_in_each_form__is_taken_where_all_read_it_alike(
    payload: bytes,
) -> None:
    def is_taken(form: Form) -> bool:
        try:
            check_strict(form.data, ClientEnvelope)
        except NotStrict:
            return False
        return True

    found = list(forms(payload, ClientEnvelope.DESCRIPTOR))

    assert [each.name for each in found if is_taken(each) is not each.is_read_alike] == []
    assert len(found) > 20


@pytest.mark.parametrize("name", [*DEVIATIONS, *CUT])
def test_check_strict__one_deviation__is_refused_by_its_name_and_field(name: str) -> None:
    data, deviation, place = (DEVIATIONS | CUT)[name]

    with pytest.raises(NotStrict) as caught:
        check_strict(data, ClientEnvelope)

    assert caught.value.deviation is Deviation[deviation]
    assert place in caught.value.subject


def test_deviations__all__have_a_case() -> None:
    assert {each for _, each, _ in DEVIATIONS.values()} == {*Deviation.__members__}


@given(
    st.sampled_from(PAYLOADS),
    st.sampled_from(sorted({*DEVIATIONS} - {"too many"})),
    st.booleans(),
)
def test_check_strict__deviation_beside_a_valid_message__is_refused(
    payload: bytes, name: str, is_behind: bool
) -> None:
    data, _, _ = DEVIATIONS[name]

    with pytest.raises(NotStrict):
        check_strict(payload + data if is_behind else data + payload, ClientEnvelope)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ACTION + ACTION + TIME + INBOX_ID,
        TIME + ACTION + INBOX_ID + ACTION,
        INBOX_ID + b"\x22\x01x" + b"\x29" + b"8" * 8 + b"\x35" + b"4" * 4 + b"\x38\x01",
        b"\x22\x00\x22\x00",
        b"\x10" + b"\xff" * 9 + b"\x01",
        b"\x10\x85\x00",
        with_length(3, b"ab", tag=5, length=5),
    ],
)
def test_check_strict__form_that_all_libraries_read_alike__passes(data: bytes) -> None:
    check_strict(data, IdentityUpdate)


def test_entries_of_maps__all__are_from_integers_to_integers() -> None:
    # A usual entry is compared with one pattern.
    def entries(descriptor: Any) -> set[tuple[int, ...]]:
        within = [each.message_type for each in descriptor.fields if each.message_type]
        found = set().union(*map(entries, within)) if within else set()
        if descriptor.GetOptions().map_entry:
            found.add(tuple(each.type for each in descriptor.fields))
        return found

    uint32_to_uint64 = (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64)
    kinds = (ClientEnvelope, OriginatorEnvelope, UnsignedOriginatorEnvelope, PayerEnvelope)
    assert set().union(*(entries(each.DESCRIPTOR) for each in kinds)) == {uint32_to_uint64}


def test_check_strict__most_fields__pass() -> None:
    check_strict(with_length(99, b"") * MOST_FIELDS, OriginatorEnvelope)


@given(st.binary(max_size=64))
def test_check_strict__any_bytes__pass_or_are_refused(data: bytes) -> None:
    try:
        check_strict(data, IdentityUpdate)
    except NotStrict as error:
        assert str(error).isprintable()


@given(st.sampled_from(RECORDED), st.data())
def test_check_strict__update_that_was_cut__is_refused(whole: bytes, data: st.DataObject) -> None:
    # The last field is the inbox id: a cut within it is one of no field's end.
    cut = data.draw(st.integers(1, 65))

    with pytest.raises(NotStrict):
        check_strict(whole[:-cut], IdentityUpdate)
