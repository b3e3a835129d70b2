"""The signatures of an identity update: their signers, and whether they are valid (XIP-46).

``read_signature`` names the signer and checks nothing expensive: a wallet's address is recovered,
all other kinds name their signer. ``check`` checks the signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final

import orjson

from chainkit.documents.fields import parse_json
from chainkit.errors import ConfigurationError, InvalidSignature
from chainkit.identity import curves
from chainkit.identity.identifiers import (
    MemberIdentifier,
    MemberKind,
    installation,
    passkey,
    wallet_of,
)
from chainkit.identity.text import SignedText, create_identity_text, eip191_digest
from chainkit.identity.wallets import WalletSignature, parse_account_id
from chainkit.protocol.proto import identity_associations_pb2 as associations_pb2
from chainkit.protocol.proto import message_contents_pb2
from chainkit.protocol.strict import NotStrict, check_strict
from chainkit.signatures import (
    SECP256K1_ORDER,
    SIGNATURE_LENGTH,
    is_valid_public_key,
    keccak256,
    recover_public_key,
)

_PARITIES: Final = {0: 0, 1: 1, 27: 0, 28: 1}
"""The parity by V: wallets write 27 and 28, others 0 and 1."""


class SignatureKind(StrEnum):
    """Kinds of signatures that an update may carry."""

    ERC_191 = "wallet's"
    ERC_1271 = "contract wallet's"
    INSTALLATION = "installation's"
    LEGACY = "legacy key's"
    PASSKEY = "passkey's"


KINDS_OF_MEMBER: Final = {
    MemberKind.ETHEREUM: {
        SignatureKind.ERC_191,
        SignatureKind.ERC_1271,
        SignatureKind.LEGACY,
    },
    MemberKind.INSTALLATION: {SignatureKind.INSTALLATION},
    MemberKind.PASSKEY: {SignatureKind.PASSKEY},
}
"""The kinds of signatures that each kind of member makes."""


@dataclass(frozen=True, slots=True)
class Ed25519Proof:
    """An installation's signature, to be checked."""

    signature: bytes


@dataclass(frozen=True, slots=True)
class PasskeyProof:
    """A passkey's signature, to be checked."""

    signature: bytes
    """DER."""
    authenticator_data: bytes
    client_data_json: bytes


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature with the signer it names."""

    signer: MemberIdentifier
    kind: SignatureKind
    fingerprints: frozenset[bytes]
    """32 bytes each: an update with one that was used before is a replay. Several, since most kinds
    of signatures can be rewritten by anybody: see ``_fingerprints``."""
    proof: Ed25519Proof | PasskeyProof | WalletSignature | None = None
    """The rest, which is to be checked; None where recovering the signer was the check."""
    delegate: MemberIdentifier | None = None
    """Address of the key that a wallet delegated to; None unless the kind is LEGACY."""

    @property
    def chain_id(self) -> int | None:
        """Chain of a contract wallet; None for every other kind."""
        return self.proof.chain_id if isinstance(self.proof, WalletSignature) else None


def read_signature(message: associations_pb2.Signature, text: SignedText) -> Signed:
    """Return a signature with the signer it names.

    Raises MalformedData (or InvalidSignature, its subclass) for a signature that names no signer.
    """
    kind = message.WhichOneof("signature")
    if kind is None:
        raise InvalidSignature("signature", "one of five kinds", "another kind, or none")
    return _READERS[kind](getattr(message, kind), text)


def check(signed: Signed, text: SignedText) -> None:
    """Check a signature by the signer's own key, without any chain. Raises InvalidSignature."""
    key = signed.signer.value
    match signed.proof:
        case Ed25519Proof(signature):
            curves.check_ed25519ph(key, signature, text.text)
        case PasskeyProof(signature, authenticator_data, client_data_json):
            _check_client_data(client_data_json, text)
            message = curves.webauthn_message(authenticator_data, client_data_json)
            curves.check_p256(key, signature, message)


def _erc_191(message: associations_pb2.RecoverableEcdsaSignature, text: SignedText) -> Signed:
    signer = _recover(message.bytes, text.eip191_digest)
    return _signed(signer, SignatureKind.ERC_191, text, _forms(message.bytes))


def _erc_1271(message: associations_pb2.SmartContractWalletSignature, text: SignedText) -> Signed:
    chain_id, address = parse_account_id(message.account_id)
    signature = message.signature
    asked = WalletSignature(
        chain_id, address, message.block_number, text.eip191_digest, message.signature
    )
    signed = _signed(wallet_of(address), SignatureKind.ERC_1271, text, {signature})
    return Signed(signed.signer, signed.kind, signed.fingerprints, asked)


def _installation(
    message: associations_pb2.RecoverableEd25519Signature, text: SignedText
) -> Signed:
    signer, signature = installation(message.public_key), message.bytes
    signed = _signed(signer, SignatureKind.INSTALLATION, text, {signature})
    return Signed(signer, signed.kind, signed.fingerprints, Ed25519Proof(signature))


def _legacy(message: associations_pb2.LegacyDelegatedSignature, text: SignedText) -> Signed:
    """Read a key's signature for the wallet that delegated to the key.

    The wallet's signature counts as used, not the key's: the key may sign for one update only.
    """
    delegate = _recover(message.signature.bytes, text.eip191_digest)
    key_bytes = message.delegated_key.key_bytes
    if _delegated_wallet(key_bytes) != delegate:
        raise InvalidSignature("legacy key's signature", "one of the delegated key", "another's")
    compact = _wallet_signature(message.delegated_key.signature)
    wallet_text = create_identity_text(key_bytes).encode("ascii")
    signer = _recover(compact, eip191_digest(wallet_text))
    signed = _signed(signer, SignatureKind.LEGACY, text, _forms(compact))
    return Signed(signer, signed.kind, signed.fingerprints, delegate=delegate)


def _passkey(message: associations_pb2.RecoverablePasskeySignature, text: SignedText) -> Signed:
    signer = passkey(message.public_key)
    r, s = curves.p256_scalars(message.signature)
    low = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    signed = _signed(signer, SignatureKind.PASSKEY, text, {low})
    proof = PasskeyProof(message.signature, message.authenticator_data, message.client_data_json)
    return Signed(signer, signed.kind, signed.fingerprints, proof)


_READERS: Final[dict[str, Callable[..., Signed]]] = {
    "erc_191": _erc_191,
    "erc_6492": _erc_1271,
    "installation_key": _installation,
    "delegated_erc_191": _legacy,
    "passkey": _passkey,
}


def _signed(
    signer: MemberIdentifier, kind: SignatureKind, text: SignedText, forms: set[bytes]
) -> Signed:
    return Signed(signer, kind, _fingerprints(signer, text, forms))


def _fingerprints(
    signer: MemberIdentifier, text: SignedText, forms: set[bytes]
) -> frozenset[bytes]:
    """Return what shows a replay: the signature's bytes, and that the signer signed this text.

    Bytes alone do not: V has two spellings, S has two values, a contract takes the same signature
    within another wrapper, and a passkey's data has a counter.
    """
    statement = b"".join((signer.kind.encode("ascii"), signer.value, text.sha256))
    return frozenset(sha256(form).digest() for form in (*forms, statement))


def _recover(signature: bytes, digest: bytes) -> MemberIdentifier:
    """Return the wallet that signed. Raises InvalidSignature where it recovers to nobody.

    A higher S is lowered while V stays, as in today's clients: these treat both as one signature.
    """
    if len(signature) != SIGNATURE_LENGTH or signature[64] not in _PARITIES:
        expected = f"{SIGNATURE_LENGTH} bytes, the last 0, 1, 27 or 28"
        raise InvalidSignature("wallet's signature", expected, f"{len(signature)} bytes")
    parity = bytes([_PARITIES[signature[64]]])
    public_key = recover_public_key(_with_low_s(signature) + parity, digest)
    return wallet_of(keccak256(public_key[1:])[-20:])


def _forms(signature: bytes) -> set[bytes]:
    """Return a wallet's signature as it came, and with low S and each V of the same parity."""
    low, parity = _with_low_s(signature), _PARITIES[signature[64]]
    same = (v for v, other in _PARITIES.items() if other == parity)
    return {signature, *(low + bytes([v]) for v in same)}


def _with_low_s(signature: bytes) -> bytes:
    """Return R and the lower S of a signature, 64 bytes."""
    s = int.from_bytes(signature[32:64], "big")
    low = min(s, SECP256K1_ORDER - s) if s < SECP256K1_ORDER else s
    return signature[:32] + low.to_bytes(32, "big")


def _wallet_signature(message: message_contents_pb2.Signature) -> bytes:
    """Return a compact signature as 65 bytes. Raises InvalidSignature where there is none."""
    kind = message.WhichOneof("union")
    compact = getattr(message, kind) if kind else None
    if compact is None or compact.recovery not in _PARITIES:
        raise InvalidSignature("delegating signature", "a recovery of 0, 1, 27 or 28", "another")
    return bytes(compact.bytes) + bytes([compact.recovery])


def _delegated_wallet(key_bytes: bytes) -> MemberIdentifier:
    """Return the address of a serialized UnsignedPublicKey. Raises InvalidSignature."""
    try:
        check_strict(key_bytes, message_contents_pb2.UnsignedPublicKey)
    except NotStrict as error:
        raise InvalidSignature("delegated key", "an UnsignedPublicKey", error) from error
    key = message_contents_pb2.UnsignedPublicKey.FromString(key_bytes)
    public_key = key.secp256k1_uncompressed.bytes
    if not is_valid_public_key(public_key):
        expected = "an uncompressed point of secp256k1"
        raise InvalidSignature("delegated key", expected, f"{len(public_key)} bytes")
    return wallet_of(keccak256(public_key[1:])[-20:])


def _check_client_data(data: bytes, text: SignedText) -> None:
    """Check that WebAuthn's client data are about this text (WebAuthn, section 5.8.1).

    The strictest of two readers decides: no name twice, no NaN, no half of a surrogate pair.
    """
    try:
        orjson.loads(data)
        content = parse_json(data, "client data")
    except (ConfigurationError, orjson.JSONDecodeError) as error:
        raise InvalidSignature("passkey's client data", "JSON", error) from error
    is_whole = isinstance(content, dict) and isinstance(content.get("origin"), str)
    if not is_whole or content.get("challenge") != text.challenge:
        expected = "an origin, and the text as challenge"
        raise InvalidSignature("passkey's client data", expected, "another content")
