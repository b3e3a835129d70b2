from hashlib import sha512

import pytest
from Crypto.Math.Numbers import Integer
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from Crypto.Util.asn1 import DerSequence

from chainkit.errors import InvalidSignature
from chainkit.identity.curves import (
    ED25519_ORDER,
    P256_ORDER,
    check_ed25519ph,
    compressed_p256,
    p256_scalars,
)
from chainkit.identity.text import SignedText
from chainkit.protocol.proto.identity_associations_pb2 import Signature
from support.identity import (
    Installation,
    Passkey,
)

TEXT = SignedText(b"XMTP : Authenticate to inbox")
APP = Installation("app")
PASSKEY = Passkey("alice")


# ------------------------------------------------------------- installations


def ed25519(message: Signature) -> tuple[bytes, bytes]:
    return message.installation_key.public_key, message.installation_key.bytes


def test_check__installation_without_the_context__is_not_good() -> None:
    key, _ = ed25519(APP.sign(TEXT.text))
    plain = eddsa.new(APP.key, "rfc8032").sign(TEXT.text)

    with pytest.raises(InvalidSignature, match="expected one over the text"):
        check_ed25519ph(key, plain, TEXT.text)


def test_check__s_of_the_order_or_more__is_not_good() -> None:
    key, signature = ed25519(APP.sign(TEXT.text))
    raised = int.from_bytes(signature[32:], "little") + ED25519_ORDER

    for s in (raised, ED25519_ORDER):
        with pytest.raises(InvalidSignature, match="expected S below the order"):
            check_ed25519ph(key, signature[:32] + s.to_bytes(32, "little"), TEXT.text)


@pytest.mark.parametrize("length", [0, 63, 65])
def test_check__installations_signature_of_another_length__is_not_good(length: int) -> None:
    with pytest.raises(InvalidSignature, match="expected 64 bytes"):
        check_ed25519ph(APP.public_key, bytes(length), TEXT.text)


def torsion_point() -> ECC.EccPoint:
    """A point of order 8."""
    encoded = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
    return eddsa.import_public_key(bytes.fromhex(encoded)).pointQ


def encoded(point: ECC.EccPoint) -> bytes:
    raw: bytes = ECC.EccKey(point=point, curve="Ed25519").export_key(format="raw")
    return raw


def test_check__key_of_small_order__signs_nothing() -> None:
    # With such a key, R of small order and S = 0 are valid for one text of eight.
    key = encoded(torsion_point())

    with pytest.raises(InvalidSignature, match="group that honest keys generate"):
        check_ed25519ph(key, APP.sign(TEXT.text).installation_key.bytes, TEXT.text)


def test_check__key_that_is_the_neutral_point__signs_nothing() -> None:
    neutral = b"\x01" + bytes(31)

    with pytest.raises(InvalidSignature, match="group that honest keys generate"):
        check_ed25519ph(neutral, neutral + bytes(32), TEXT.text)


def test_check__r_with_a_part_of_small_order__is_not_good() -> None:
    # The library below multiplies that part away; today's clients do not.
    r = Integer(12345)
    point = encoded(APP.key._curve.G * r + torsion_point())
    prefix = b"SigEd25519 no Ed25519 collisions\x01\x19IDENTITY UPDATE SIGNATURE"
    k = sha512(prefix + point + APP.public_key + sha512(TEXT.text).digest()).digest()
    s = (r + Integer.from_bytes(k, "little") * APP.key.d) % ED25519_ORDER

    with pytest.raises(InvalidSignature, match="group that honest keys generate"):
        check_ed25519ph(APP.public_key, point + s.to_bytes(32, "little"), TEXT.text)


# ------------------------------------------------------------------ passkeys


def test_p256_scalars__higher_s__is_the_same_signature() -> None:
    signature = PASSKEY.sign(TEXT.text).passkey.signature
    r, s = DerSequence().decode(signature)  # type: ignore[misc]
    other = DerSequence([r, P256_ORDER - s]).encode()

    assert other != signature
    assert p256_scalars(other) == p256_scalars(signature)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "30",
        "3080",
        "3003020101",
        "3006020100020101",
        "3006020101020100",
        "30060201ff020101",
        "30070202000102 0101",
        "300602010102010100",
        "308106020101020101",
        "3006040101020101",
    ],
)
def test_p256_scalars__another_form_of_der__is_refused(signature: str) -> None:
    with pytest.raises(InvalidSignature, match="DER of two scalars"):
        p256_scalars(bytes.fromhex(signature))


def test_p256_scalars__scalar_of_the_order__is_refused() -> None:
    with pytest.raises(InvalidSignature, match="DER of two scalars"):
        p256_scalars(DerSequence([1, P256_ORDER]).encode())


def test_compressed_p256__both_forms_of_a_key__are_the_same() -> None:
    for number in range(4):
        short, long = (Passkey(f"key {number}", each).public_key for each in (True, False))
        assert compressed_p256(long) == compressed_p256(short) == short
