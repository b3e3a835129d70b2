"""The interface of every signer, and the check of each signature that it makes.

A wallet may sign something else than the request, or with another key than the shown one. So the
hash is computed here, and a signature counts once its signer was recovered from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from chainkit.council.signing.hashes import (
    decode_transaction,
    transaction_digest,
    typed_data_digest,
)
from chainkit.errors import InvalidSignature, MalformedData
from chainkit.signatures import SIGNATURE_LENGTH, address_of, recover_public_key
from chainkit.text.hexadecimal import hex0x

V_OFFSET = 27
"""The number that Ethereum's wallets add to V, which is 0 or 1."""


class Signer(Protocol):
    """An account that signs; its repr never shows a secret."""

    @property
    def label(self) -> str:
        """The signer's kind, for errors: ``keystore``, ``Ape account council-1``."""

    @property
    def address(self) -> str:
        """Checksummed address of the account."""

    def sign_typed_data(self, typed_data: Mapping[str, Any]) -> bytes:
        """Sign EIP-712 JSON (``types``, ``primaryType``, ``domain``, ``message``).

        Returns 65 bytes R ‖ S ‖ V with V 27 or 28. Raises ChainkitError where it does not sign.
        """

    def sign_transaction(self, fields: Mapping[str, Any]) -> bytes:
        """Sign an EIP-1559 transaction, given by Ethereum's names; ``to`` and ``data`` are bytes.

        Returns the EIP-2718 envelope. Raises ChainkitError where the account does not sign.
        """


def sign_typed_data(signer: Signer, typed_data: Mapping[str, Any], digest: bytes) -> bytes:
    """Let a signer sign, and prove that the signature is the signer's over ``digest``, 32 bytes.

    ``digest`` is computed by the caller by other means than from the JSON. Raises MalformedData
    where the JSON has another hash: then nothing is signed. Raises InvalidSignature where the
    signature is not the signer's over ``digest``.
    """
    found = typed_data_digest(typed_data)
    if found != digest:
        raise MalformedData("hash of the typed data", hex0x(digest), hex0x(found))
    signature = signer.sign_typed_data(typed_data)
    if len(signature) == SIGNATURE_LENGTH and signature[-1] in (0, 1):
        signature = signature[:-1] + bytes([signature[-1] + V_OFFSET])
    _require(signer, recover_signer(digest, signature), "signature")
    return signature


def sign_transaction(signer: Signer, fields: Mapping[str, Any]) -> bytes:
    """Let a signer sign a transaction, and prove that the signer's own key signed this transaction.

    ``fields`` are those of an EIP-1559 transaction by Ethereum's names; ``to`` and ``data`` are
    bytes. Returns the EIP-2718 envelope. Raises InvalidSignature where the signer signed anything
    else.
    """
    raw = signer.sign_transaction(fields)
    found, signature = decode_transaction(raw)
    digest = transaction_digest(fields)
    if found != digest:
        subject, expected = f"transaction signed by {signer.label}", f"hash 0x{digest.hex()}"
        raise InvalidSignature(subject, expected, f"another one's, 0x{found.hex()}")
    _require(signer, recover_signer(digest, signature), "signed transaction")
    return raw


def recover_signer(digest: bytes, signature: bytes) -> str:
    """Return the checksummed address whose key signed a 32-byte digest, with V 27 or 28.

    Raises InvalidSignature for a wrong length, another V, a high S, and what recovers to nobody.
    """
    if len(signature) != SIGNATURE_LENGTH:
        raise InvalidSignature("signature", f"{SIGNATURE_LENGTH} bytes", f"{len(signature)} bytes")
    if signature[-1] not in (V_OFFSET, V_OFFSET + 1):
        raise InvalidSignature("signature", "V 27 or 28", f"V {signature[-1]}")
    plain = signature[:-1] + bytes([signature[-1] - V_OFFSET])
    return address_of(recover_public_key(plain, digest))


def _require(signer: Signer, found: str, subject: str) -> None:
    if found != signer.address:
        raise InvalidSignature(
            f"{subject} of {signer.label}", f"of {signer.address}", f"of {found}"
        )
