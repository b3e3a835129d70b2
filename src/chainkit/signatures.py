"""keccak256 and recoverable secp256k1 signatures, each under a domain label.

A signature is 65 bytes R ‖ S ‖ V with V in {0, 1}, low S, and a nonce by RFC 6979, over the
keccak256 of a label and what is signed. The label keeps a signature made for one purpose from
being replayed for another (XIP-49 §3.2.5 asks for domain separation).
"""

from __future__ import annotations

from typing import IO, Final

from coincurve import PrivateKey, PublicKey
from sha3 import keccak_256

from chainkit.errors import InvalidSignature

BLOCKCHAIN_LABEL: Final = b"blockchain|"
"""Label of BlockchainProof.node_signature."""

PAYER_LABEL: Final = b"payer|"
"""Label of PayerEnvelope.payer_signature, as XIP-49 has it."""

TARGET_LABEL: Final = b"target|"
"""A label before PAYER_LABEL where a payer's signature covers the target originator, too."""

RETENTION_LABEL: Final = b"retention|"
"""Label of a payer's second signature, which covers the retention."""

ORIGINATOR_LABEL: Final = b"originator|"
"""Label of OriginatorEnvelope.originator_signature."""

MISBEHAVIOR_LABEL: Final = b"misbehavior|"
"""Label of MisbehaviorReport.signature."""

TOPIC_HEAD_LABEL: Final = b"topic-head|"
"""Label of SignedTopicHead.originator_signature."""

PAYER_REPORT_LABEL: Final = b"payer-report|"
"""Label of SignedPayerReport.originator_signature."""

PAYER_ATTESTATION_LABEL: Final = b"payer-report-attestation|"
"""Label of the signatures of nodes that computed the same payer report."""

JWT_LABEL: Final = b"jwt|"
"""Label of the signature of a token by which a node proves its identity to another node."""

SECRET_LENGTH: Final = 32
SIGNATURE_LENGTH: Final = 65
PUBLIC_KEY_LENGTH: Final = 65
SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def keccak256(data: bytes) -> bytes:
    """Return the 32-byte keccak256 of ``data``."""
    # Without eth-hash: its imports take 4 MB in the process that signs.
    digest: bytes = keccak_256(data).digest()
    return digest


class SigningKey:
    """A secp256k1 private key; its repr shows only the public key."""

    __slots__ = ("_private_key", "public_key")

    def __init__(self, secret: bytes) -> None:
        """Take the 32-byte secret. Raises InvalidSignature if it is no scalar of the curve."""
        # coincurve would pad a short secret to another key.
        if len(secret) != SECRET_LENGTH or not 0 < int.from_bytes(secret, "big") < SECP256K1_ORDER:
            expected = f"{SECRET_LENGTH} bytes below the order of secp256k1"
            raise InvalidSignature("private key", expected, f"{len(secret)} bytes")
        self._private_key = PrivateKey(secret)
        self.public_key: bytes = self._private_key.public_key.format(compressed=False)

    def __repr__(self) -> str:
        """Show the key's address, never the key."""
        return f"SigningKey(address={address_of(self.public_key)})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be pickled: that would write the secret."""
        raise TypeError("a SigningKey does not leave the process")

    def write_secret(self, pipe: IO[bytes]) -> None:
        """Hand the 32-byte secret to a process of one's own: never to a file."""
        pipe.write(self._private_key.secret)
        pipe.flush()

    def sign(self, digest: bytes) -> bytes:
        """Return the 65-byte recoverable signature over a 32-byte digest."""
        return self._private_key.sign_recoverable(digest, hasher=None)


def recover_public_key(signature: bytes, digest: bytes) -> bytes:
    """Return the 65-byte uncompressed public key that signed a 32-byte digest.

    Raises InvalidSignature for a wrong length, a V outside {0, 1}, a high S (each signature
    would otherwise have a second, equally valid form), or a point that cannot be recovered.
    """
    if len(signature) != SIGNATURE_LENGTH:
        raise InvalidSignature("signature", f"{SIGNATURE_LENGTH} bytes", f"{len(signature)} bytes")
    if signature[64] not in (0, 1):
        raise InvalidSignature("signature", "V in {0, 1}", f"V {signature[64]}")
    if int.from_bytes(signature[32:64], "big") > SECP256K1_ORDER // 2:
        raise InvalidSignature("signature", "S in the lower half of the order", "a high S")
    try:
        public_key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except Exception as error:  # coincurve raises bare Exception for a point off the curve
        raise InvalidSignature("signature", "a recoverable public key", str(error)) from error
    return public_key.format(compressed=False)


def is_valid_public_key(public_key: bytes) -> bool:
    """Return whether this is an uncompressed secp256k1 point, 0x04 ‖ X ‖ Y (XIP-49 §3.1.1)."""
    if len(public_key) != PUBLIC_KEY_LENGTH or public_key[0] != 0x04:
        return False
    try:
        PublicKey(public_key)
    except ValueError:
        return False
    return True


def address_of(public_key: bytes) -> str:
    """Return the checksummed account address of a 65-byte uncompressed public key."""
    from eth_utils.address import to_checksum_address

    return to_checksum_address(keccak256(public_key[1:])[-20:])
