"""Signatures of installations (Ed25519ph) and passkeys (ECDSA over P-256).

Both refuse more than the library below them does: today's clients check Ed25519 without a cofactor
and read DER strictly. If those clients refused a signature that is accepted here, they could not
read the inbox.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from Crypto.Hash import SHA256, SHA512
from Crypto.PublicKey import ECC
from Crypto.Signature import DSS, eddsa
from Crypto.Util.asn1 import DerSequence

from chainkit.errors import InvalidSignature

ED25519_SIGNATURE_LENGTH: Final = 64
ED25519_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""Order of the group that honest keys generate."""
P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

INSTALLATION_CONTEXT: Final = b"IDENTITY UPDATE SIGNATURE"
"""The context of an installation's signature (XIP-46)."""


def check_ed25519ph(
    key: bytes, signature: bytes, text: bytes, context: bytes = INSTALLATION_CONTEXT
) -> None:
    """Check an installation's signature over a text (RFC 8032), by default with XIP-46's context.

    ``key`` has 32 bytes. Raises InvalidSignature for another length than 64 bytes, an S that is not
    below the order, a point outside the group that honest keys generate (with a point of small
    order as its key, one signature would be valid for every text), or where it is not valid.
    """
    if len(signature) != ED25519_SIGNATURE_LENGTH:
        expected = f"{ED25519_SIGNATURE_LENGTH} bytes"
        raise InvalidSignature("installation's signature", expected, f"{len(signature)} bytes")
    if int.from_bytes(signature[32:], "little") >= ED25519_ORDER:
        raise InvalidSignature("installation's signature", "S below the order", "a higher S")
    public_key = _point_of_the_group(key)
    _point_of_the_group(signature[:32])
    try:
        verifier = eddsa.new(public_key, "rfc8032", context=context)
        verifier.verify(SHA512.new(text), signature)
    except ValueError as error:
        raise InvalidSignature("installation's signature", "one over the text", error) from error


def check_p256(key: bytes, signature: bytes, message: bytes) -> None:
    """Check a passkey's ECDSA signature, in DER, over the SHA-256 of a message.

    Raises InvalidSignature for a key that is no point of the curve, and a signature that is not
    valid.
    """
    try:
        public_key = ECC.import_key(key, curve_name="P-256")
        DSS.new(public_key, "fips-186-3", encoding="der").verify(SHA256.new(message), signature)
    except ValueError as error:
        raise InvalidSignature("passkey's signature", "one over the client data", error) from error


def p256_scalars(signature: bytes) -> tuple[int, int]:
    """Return R and the lower S of a signature in DER, which has two forms with another S.

    Raises InvalidSignature for another form of DER than the only one of two scalars.
    """
    expected = "DER of two scalars of P-256"
    sequence = DerSequence()
    try:
        sequence.decode(signature, nr_elements=2)
        # The library's stubs have no type for what a sequence holds.
        scalars: list[Any] = [sequence[0], sequence[1]]
    except (ValueError, IndexError) as error:
        raise InvalidSignature("passkey's signature", expected, error) from error
    is_valid = all(isinstance(each, int) and 0 < each < P256_ORDER for each in scalars)
    if not is_valid or DerSequence(scalars).encode() != signature:
        raise InvalidSignature("passkey's signature", expected, "another form")
    r, s = scalars
    return r, min(s, P256_ORDER - s)


def compressed_p256(key: bytes) -> bytes:
    """Return the 33 bytes of a P-256 key in SEC 1's short form; SEC 1 also has a longer form.

    The first byte of both forms shows whether Y is odd, so nothing is computed on the curve.
    """
    return key if len(key) == 33 else bytes([2 + (key[-1] & 1)]) + key[1:33]


def webauthn_message(authenticator_data: bytes, client_data_json: bytes) -> bytes:
    """Return the bytes that a passkey signs for an assertion (WebAuthn, section 6.3.3)."""
    return authenticator_data + sha256(client_data_json).digest()


def _point_of_the_group(encoded: bytes) -> ECC.EccKey:
    try:
        key = eddsa.import_public_key(encoded)
    except ValueError as error:
        raise InvalidSignature("installation's signature", "points of Ed25519", error) from error
    point = key.pointQ
    is_small = point.is_point_at_infinity()
    if is_small or not (point * ED25519_ORDER).is_point_at_infinity():
        expected = "points of the group that honest keys generate"
        raise InvalidSignature("installation's signature", expected, "another point")
    return key
