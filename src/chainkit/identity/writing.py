"""Writes identity updates: their actions, each with the signatures that it needs (XIP-46)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from Crypto.Hash import SHA512
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

from chainkit.identity import identifiers
from chainkit.identity.actions import (
    Action,
    AddAssociation,
    ChangeRecovery,
    CreateInbox,
    RevokeAssociation,
)
from chainkit.identity.curves import INSTALLATION_CONTEXT
from chainkit.identity.identifiers import MemberIdentifier, MemberKind
from chainkit.identity.text import eip191_digest, signature_text
from chainkit.protocol.proto import identity_associations_pb2 as associations_pb2
from chainkit.signatures import SigningKey, keccak256


class Signer(Protocol):
    """An identity that signs the text of an update."""

    @property
    def identifier(self) -> MemberIdentifier:
        """The signer's role in an inbox."""

    def sign(self, text: bytes) -> associations_pb2.Signature:
        """Sign the text."""


Step: TypeAlias = tuple[Action, Sequence[Signer]]
"""An action and its signers: for an addition the existing member first, and then the new one."""


class WalletSigner:
    """A wallet whose key is here."""

    def __init__(self, key: SigningKey) -> None:
        """Take the wallet's key."""
        self._key = key
        self.identifier = identifiers.wallet_of(keccak256(key.public_key[1:])[-20:])

    def sign(self, text: bytes) -> associations_pb2.Signature:
        """Sign as wallets do (ERC-191)."""
        signature = self._key.sign(eip191_digest(text))
        message = associations_pb2.Signature()
        message.erc_191.bytes = signature[:64] + bytes([27 + signature[64]])
        return message


class InstallationSigner:
    """An installation; its Ed25519 key also signs in all its groups."""

    def __init__(self, seed: bytes) -> None:
        """Take the 32-byte seed of the key."""
        self._key: ECC.EccKey = eddsa.import_private_key(seed)
        self.public_key: bytes = self._key.public_key().export_key(format="raw")
        self.identifier = identifiers.installation(self.public_key)

    def sign(self, text: bytes) -> associations_pb2.Signature:
        """Sign with Ed25519ph and XIP-46's context: no MLS signature is one of these."""
        message = associations_pb2.Signature()
        message.installation_key.public_key = self.public_key
        message.installation_key.bytes = self.signature(text, INSTALLATION_CONTEXT)
        return message

    def signature(self, text: bytes, context: bytes) -> bytes:
        """Return 64 bytes: Ed25519ph over a text; each purpose has a context of its own."""
        return eddsa.new(self._key, "rfc8032", context=context).sign(SHA512.new(text))


def written_update(inbox_id: bytes, client_timestamp_ns: int, steps: Iterable[Step]) -> bytes:
    """Return a serialized IdentityUpdate whose signers all sign its one text.

    ``client_timestamp_ns`` is the client's clock in nanoseconds since 1970. No rule is checked.
    """
    steps = list(steps)
    text = signature_text(inbox_id, client_timestamp_ns, [action for action, _ in steps]).encode()
    message = associations_pb2.IdentityUpdate(
        client_timestamp_ns=client_timestamp_ns, inbox_id=inbox_id.hex()
    )
    for action, signers in steps:
        _put(message.actions.add(), action, [signer.sign(text) for signer in signers])
    return message.SerializeToString()


def _put(
    message: associations_pb2.IdentityAction,
    action: Action,
    signatures: Sequence[associations_pb2.Signature],
) -> None:
    match action:
        case CreateInbox(owner, nonce):
            created = message.create_inbox
            created.initial_identifier, created.nonce = str(owner), nonce
            created.initial_identifier_kind = _kind(owner)
            created.initial_identifier_signature.CopyFrom(signatures[0])
        case AddAssociation(member):
            _put_member(message.add.new_member_identifier, member)
            message.add.existing_member_signature.CopyFrom(signatures[0])
            message.add.new_member_signature.CopyFrom(signatures[1])
        case RevokeAssociation(member):
            _put_member(message.revoke.member_to_revoke, member)
            message.revoke.recovery_identifier_signature.CopyFrom(signatures[0])
        case ChangeRecovery(recovery):
            changed = message.change_recovery_address
            changed.new_recovery_identifier = str(recovery)
            changed.new_recovery_identifier_kind = _kind(recovery)
            changed.existing_recovery_identifier_signature.CopyFrom(signatures[0])


def _kind(identifier: MemberIdentifier) -> associations_pb2.IdentifierKind:
    if identifier.kind is MemberKind.PASSKEY:
        return associations_pb2.IDENTIFIER_KIND_PASSKEY
    return associations_pb2.IDENTIFIER_KIND_ETHEREUM


def _put_member(message: associations_pb2.MemberIdentifier, member: MemberIdentifier) -> None:
    match member.kind:
        case MemberKind.ETHEREUM:
            message.ethereum_address = str(member)
        case MemberKind.INSTALLATION:
            message.installation_public_key = member.value
        case MemberKind.PASSKEY:
            message.passkey.key = member.value
