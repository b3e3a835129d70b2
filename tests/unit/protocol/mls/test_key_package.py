from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedMls
from chainkit.protocol.mls.key_package import (
    MAXIMUM_KEY_PACKAGE_LENGTH,
    check_key_package,
    parse_key_package,
)
from chainkit.protocol.proto import envelopes_pb2
from support.damage import damaged
from support.mls import SECONDS, KeyPackageFields, numbers, vector
from support.vectors import from_hex, load

CASE = load("todays_clients")["cases"][0]
FIELDS = KeyPackageFields()
NOW_NS = SECONDS * 10**9

EXTENSION = b"\xff\x01" + vector(b"content")


def todays_key_package() -> bytes:
    envelope = envelopes_pb2.ClientEnvelope.FromString(from_hex(CASE["client_envelope"]))
    return envelope.upload_key_package.key_package.key_package_tls_serialized


@pytest.mark.conforms("N15")
def test_check__key_package_of_today_s_client__is_whole_and_signed() -> None:
    package = parse_key_package(todays_key_package())

    check_key_package(package, int(CASE["published_at_ns"]))
    assert package.cipher_suite == 3
    assert package.installation_key == from_hex(CASE["topic"])[1:]
    # An XMTP credential is a message with the inbox id in its first field.
    assert package.credential[:2] == b"\x0a\x40"
    assert len(bytes.fromhex(package.credential[2:].decode())) == 32
    assert package.not_after - package.not_before == 84 * 86_400 + 3600


def test_parse__key_package__gives_every_field() -> None:
    package = parse_key_package(FIELDS.written())

    check_key_package(package, NOW_NS)
    assert (package.cipher_suite, package.init_key, package.credential) == (1, b"i" * 32, b"inbox")
    assert package.installation_key == FIELDS.installation_key
    assert (package.not_before, package.not_after) == (SECONDS - 3600, SECONDS + 3600)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version 1, got 2"),
        ({"cipher_suite": 2}, "cipher suite 1 or 3, got 2"),
        ({"init_key": bytes(31)}, "a key of 32 bytes, got 31 bytes"),
        ({"encryption_key": bytes(65)}, "a key of 32 bytes, got 65 bytes"),
        ({"encryption_key": b"i" * 32}, "an encryption key other than the init key, got the same"),
        ({"credential": b"\0\2" + vector(b"")}, "a basic credential (1), got 2"),
        ({"versions": numbers(2, 3)}, "capabilities with version 1, got 2 others"),
        ({"credentials": numbers(2)}, "capabilities with basic credentials (1), got 1 others"),
        ({"credentials": vector(b"\0")}, "2 more bytes, got 1"),
        ({"source": 3}, "the leaf node of a key package (1), got 3"),
        (
            {"extensions": numbers()},
            "extensions that the leaf node's capabilities list, got 0xff00",
        ),
        ({"leaf_extensions": vector(EXTENSION * 2)}, "extension 0xff01 once, got twice"),
        ({"package_extensions": vector(EXTENSION * 2)}, "extension 0xff01 once, got twice"),
        ({"rest": b"x"}, "the end, got 1 more bytes"),
    ],
)
def test_parse__key_package_that_breaks_a_rule__says_which(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(MalformedMls) as caught:
        parse_key_package(replace(FIELDS, **changes).written())

    assert str(caught.value).rpartition(" (byte ")[0] == f"key package: expected {message}"


@pytest.mark.conforms("N15")
@pytest.mark.parametrize(
    ("labels", "subject"),
    [
        ((b"KeyPackageTBS", b"KeyPackageTBS"), "leaf node"),
        ((b"LeafNodeTBS", b"LeafNodeTBS"), "key package"),
    ],
)
def test_check__signature_under_another_label__is_refused(
    labels: tuple[bytes, bytes], subject: str
) -> None:
    package = parse_key_package(replace(FIELDS, labels=labels).written())

    with pytest.raises(InvalidSignature, match=f"^{subject}: expected an Ed25519 signature of 0x"):
        check_key_package(package, NOW_NS)


@pytest.mark.conforms("N15")
def test_check__any_byte_of_a_key_package_changed__is_refused() -> None:
    whole = FIELDS.written()

    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 0x55
        with pytest.raises((MalformedMls, InvalidSignature)):
            check_key_package(parse_key_package(bytes(changed)), NOW_NS)


@pytest.mark.parametrize("seconds", [SECONDS - 3600, SECONDS + 3600])
def test_check__first_and_last_second_of_the_lifetime__are_valid(seconds: int) -> None:
    check_key_package(parse_key_package(FIELDS.written()), seconds * 10**9 + 999_999_999)


@pytest.mark.conforms("N15")
@pytest.mark.parametrize("seconds", [0, SECONDS - 3601, SECONDS + 3601])
def test_check__time_outside_of_the_lifetime__is_refused(seconds: int) -> None:
    package = parse_key_package(FIELDS.written())

    with pytest.raises(MalformedMls) as caught:
        check_key_package(package, seconds * 10**9)

    lifetime = f"one from {SECONDS - 3600} to {SECONDS + 3600}"
    assert str(caught.value) == (
        f"key package: expected a lifetime that contains {seconds}, got {lifetime}"
    )


@pytest.mark.parametrize("length", [0, 63, 65])
def test_check__signature_of_another_length__is_refused(length: int) -> None:
    package = parse_key_package(FIELDS.written())
    leaf_node = replace(package.leaf_node, signature=bytes(length))

    with pytest.raises(InvalidSignature):
        check_key_package(replace(package, leaf_node=leaf_node), NOW_NS)


def test_check__key_that_is_no_point__is_refused() -> None:
    package = parse_key_package(FIELDS.written())

    with pytest.raises(InvalidSignature):
        check_key_package(replace(package, installation_key=b"\xff" * 32), NOW_NS)


def test_parse__more_bytes_than_the_limit__is_refused_unread() -> None:
    with pytest.raises(MalformedMls, match="expected at most 65536 bytes, got 65537 bytes"):
        parse_key_package(bytes(MAXIMUM_KEY_PACKAGE_LENGTH + 1))


def test_parse__key_package_cut_anywhere__is_refused() -> None:
    whole = todays_key_package()

    for length in range(0, len(whole), 7):
        with pytest.raises(MalformedMls):
            parse_key_package(whole[:length])


@given(st.binary(max_size=100) | damaged(todays_key_package()) | damaged(FIELDS.written()))
def test_parse_and_check__arbitrary_bytes__give_a_package_or_a_typed_error(data: bytes) -> None:
    try:
        package = parse_key_package(data)
        check_key_package(package, NOW_NS)
    except (MalformedMls, InvalidSignature):
        return
    assert package.package.content + vector(package.package.signature) == data
