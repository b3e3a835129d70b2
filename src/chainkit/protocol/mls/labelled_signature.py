"""Ed25519 signatures under a label: MLS's VerifyWithLabel (RFC 9420 §5.1.2)."""

from __future__ import annotations

from typing import Final

from Crypto.Signature import eddsa

from chainkit.errors import InvalidSignature
from chainkit.protocol.mls.presentation import written_vector

_PREFIX: Final = b"MLS 1.0 "


def verify_with_label(
    subject: str, public_key: bytes, label: bytes, content: bytes, signature: bytes
) -> None:
    """Raise InvalidSignature unless ``signature`` is over ``content`` under a label.

    ``public_key`` is an Ed25519 key of 32 bytes, a signature has 64; other lengths are invalid.
    ``label`` is without its prefix, ``subject`` names the content in the error.
    """
    signed = written_vector(_PREFIX + label) + written_vector(content)
    try:
        verifier = eddsa.new(eddsa.import_public_key(public_key), "rfc8032")
        verifier.verify(signed, signature)
    except ValueError as error:
        expected = f"an Ed25519 signature of 0x{public_key.hex()}"
        raise InvalidSignature(subject, expected, f"another ({error})") from error
