import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.protocol.proto.identity_associations_pb2 import IdentityUpdate
from chainkit.protocol.strict import check_strict
from support.vectors import from_hex, load

RECORDED = [
    from_hex(case["update"])
    for inbox in load("identity_updates")["inboxes"]
    for case in inbox["cases"]
]
INBOX_ID = b"\x1a\x02ab"
TIME = b"\x10\x05"
ACTION = b"\x0a\x00"


@pytest.mark.parametrize("data", RECORDED)
def test_check_strict__update_of_a_real_client__passes(data: bytes) -> None:
    check_strict(data, IdentityUpdate)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ACTION + ACTION + TIME + INBOX_ID,
        INBOX_ID + b"\x22\x01x" + b"\x29" + b"8" * 8 + b"\x35" + b"4" * 4 + b"\x38\x01",
        b"\x10" + b"\xff" * 9 + b"\x01",
        b"\x10\x85\x00",
    ],
    ids=["nothing", "repeated field", "unknown fields", "highest integer", "longer integer"],
)
def test_check_strict__form_that_all_libraries_read_alike__passes(data: bytes) -> None:
    check_strict(data, IdentityUpdate)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x12\x01x", "expected field 2 of its own type, got type 2"),
        (b"\x18\x01", "expected field 3 of its own type, got type 0"),
        (TIME + ACTION, "expected fields in the order of their numbers, got field 1"),
        (TIME + TIME, "expected fields in the order of their numbers, got field 2"),
        (b"\x22\x00\x22\x00", "expected fields in the order of their numbers, got field 4"),
        (b"\x02\x00", "expected fields in the order of their numbers, got field 0"),
        (b"\x23\x24", "expected no group, got type 3"),
        (b"\x26", "expected no group, got type 6"),
        (b"\x10" + b"\xff" * 9 + b"\x02", "expected an integer of up to 64 bits, got another"),
        (b"\x10" + b"\x80" * 10 + b"\x01", "expected an integer of up to 64 bits, got another"),
        (b"\x10\x80", "expected an integer of up to 64 bits, got another"),
        (b"\x10", "expected an integer of up to 64 bits, got another"),
        (b"\x1a\x03ab", "expected 3 bytes of a field, got 2"),
        (b"\x29" + b"8" * 7, "expected 8 bytes of a field, got 7"),
        (
            b"\x0a\x04\x0a\x02\x08\x01",
            r"expected field 1 of its own type, got type 0 \(CreateInbox",
        ),
    ],
)
def test_check_strict__form_that_some_library_refuses__is_refused(
    data: bytes, message: str
) -> None:
    with pytest.raises(MalformedData, match=message):
        check_strict(data, IdentityUpdate)


@given(st.binary(max_size=64))
def test_check_strict__any_bytes__pass_or_are_refused(data: bytes) -> None:
    try:
        check_strict(data, IdentityUpdate)
    except MalformedData as error:
        assert str(error).isprintable()


@given(st.sampled_from(RECORDED), st.data())
def test_check_strict__update_that_was_cut__is_refused(whole: bytes, data: st.DataObject) -> None:
    # The last field is the inbox id: a cut within it is one of no field's end.
    cut = data.draw(st.integers(1, 65))

    with pytest.raises(MalformedData):
        check_strict(whole[:-cut], IdentityUpdate)
