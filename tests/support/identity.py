"""Keys that sign identity updates, and updates with any signatures."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC
from Crypto.Signature import DSS, eddsa

from chainkit.identity import identifiers
from chainkit.identity.actions import (
    AddAssociation,
    ChangeRecovery,
    CreateInbox,
    RevokeAssociation,
)
from chainkit.identity.identifiers import MemberIdentifier, derive_inbox_id
from chainkit.identity.text import create_identity_text, eip191_digest
from chainkit.identity.writing import InstallationSigner, Signer, Step, written_update
from chainkit.protocol.proto import identity_associations_pb2 as associations_pb2
from chainkit.protocol.proto import message_contents_pb2
from chainkit.signatures import SigningKey, keccak256

AT_NS = 1_735_689_600_000_000_000


def _seed(name: str) -> bytes:
    return sha256(f"test key {name}".encode()).digest()


@dataclass(frozen=True)
class Wallet:
    """A wallet with a key of its own."""

    name: str

    @cached_property
    def key(self) -> SigningKey:
        return SigningKey(_seed(self.name))

    @cached_property
    def identifier(self) -> MemberIdentifier:
        return identifiers.wallet_of(keccak256(self.key.public_key[1:])[-20:])

    def signature(self, text: bytes) -> bytes:
        signature = self.key.sign(eip191_digest(text))
        return signature[:64] + bytes([27 + signature[64]])

    def sign(self, text: bytes) -> associations_pb2.Signature:
        message = associations_pb2.Signature()
        message.erc_191.bytes = self.signature(text)
        return message


@dataclass(frozen=True)
class Installation:
    name: str

    @cached_property
    def key(self) -> ECC.EccKey:
        return eddsa.import_private_key(_seed(self.name))

    @cached_property
    def signer(self) -> InstallationSigner:
        return InstallationSigner(_seed(self.name))

    @property
    def public_key(self) -> bytes:
        return self.signer.public_key

    @property
    def identifier(self) -> MemberIdentifier:
        return self.signer.identifier

    def sign(self, text: bytes) -> associations_pb2.Signature:
        return self.signer.sign(text)


@dataclass(frozen=True)
class Passkey:
    name: str
    is_compressed: bool = True

    @cached_property
    def key(self) -> ECC.EccKey:
        return ECC.construct(curve="P-256", d=int.from_bytes(_seed(self.name), "big") >> 1)

    @cached_property
    def public_key(self) -> bytes:
        exported = self.key.public_key().export_key(format="SEC1", compress=self.is_compressed)
        assert isinstance(exported, bytes)
        return exported

    @cached_property
    def identifier(self) -> MemberIdentifier:
        return identifiers.passkey(self.public_key)

    def sign(self, text: bytes) -> associations_pb2.Signature:
        challenge = urlsafe_b64encode(text).rstrip(b"=").decode()
        return self.assertion(
            json.dumps({"challenge": challenge, "origin": "https://app"}).encode()
        )

    def assertion(self, client_data: bytes) -> associations_pb2.Signature:
        message = associations_pb2.Signature()
        message.passkey.public_key = self.public_key
        message.passkey.authenticator_data = b"a" * 37
        message.passkey.client_data_json = client_data
        digest = SHA256.new(b"a" * 37 + sha256(client_data).digest())
        message.passkey.signature = DSS.new(self.key, "fips-186-3", encoding="der").sign(digest)
        return message


@dataclass(frozen=True)
class LegacyKey:
    """A key that a wallet delegated to, which signs for the wallet."""

    wallet: Wallet
    key: Wallet
    before_key: bytes = b""
    """Bytes in front of the key, which the wallet signs with it."""

    @property
    def identifier(self) -> MemberIdentifier:
        return self.wallet.identifier

    def sign(self, text: bytes) -> associations_pb2.Signature:
        unsigned = message_contents_pb2.UnsignedPublicKey()
        unsigned.secp256k1_uncompressed.bytes = self.key.key.public_key
        key_bytes = self.before_key + unsigned.SerializeToString()
        delegation = self.wallet.signature(create_identity_text(key_bytes).encode())
        message = associations_pb2.Signature()
        message.delegated_erc_191.signature.bytes = self.key.signature(text)
        delegated = message.delegated_erc_191.delegated_key
        delegated.key_bytes = key_bytes
        delegated.signature.wallet_ecdsa_compact.bytes = delegation[:64]
        delegated.signature.wallet_ecdsa_compact.recovery = delegation[64] - 27
        return message


@dataclass(frozen=True)
class ContractWallet:
    """A wallet whose contract alone knows its signatures."""

    name: str
    chain_id: int = 1
    block_number: int = 7
    suffix: bytes = b""

    @property
    def identifier(self) -> MemberIdentifier:
        return identifiers.wallet_of(_seed(self.name)[:20])

    def sign(self, text: bytes) -> associations_pb2.Signature:
        message = associations_pb2.Signature()
        message.erc_6492.account_id = f"eip155:{self.chain_id}:{self.identifier}"
        message.erc_6492.block_number = self.block_number
        message.erc_6492.signature = sha256(text).digest() + self.suffix
        return message


@dataclass(frozen=True)
class Silent:
    """Signs nothing."""

    identifier: MemberIdentifier

    def sign(self, text: bytes) -> associations_pb2.Signature:
        return associations_pb2.Signature()


@dataclass(frozen=True)
class Changed:
    """A signer whose signatures are changed after they were made."""

    signer: Signer
    change: Callable[[associations_pb2.Signature], object]

    @property
    def identifier(self) -> MemberIdentifier:
        return self.signer.identifier

    def sign(self, text: bytes) -> associations_pb2.Signature:
        message = self.signer.sign(text)
        self.change(message)
        return message


def create(owner: Signer, nonce: int = 0, by: Signer | None = None) -> Step:
    return CreateInbox(owner.identifier, nonce), (by or owner,)


def add(member: Signer, by: Signer, signed_by: Signer | None = None) -> Step:
    return AddAssociation(member.identifier), (by, signed_by or member)


def revoke(member: Signer, by: Signer) -> Step:
    return RevokeAssociation(member.identifier), (by,)


def change_recovery(recovery: Signer, by: Signer) -> Step:
    return ChangeRecovery(recovery.identifier), (by,)


def inbox_of(owner: Signer, nonce: int = 0) -> bytes:
    return derive_inbox_id(owner.identifier, nonce)


def update(inbox_id: bytes, *steps: Step, at_ns: int = AT_NS) -> bytes:
    """A serialized IdentityUpdate of the steps, each signed by its signers."""
    return written_update(inbox_id, at_ns, steps)


def edited(data: bytes, edit: Callable[[associations_pb2.IdentityUpdate], object]) -> bytes:
    """The bytes of an update after a change to its message, with the signatures it had."""
    message = associations_pb2.IdentityUpdate.FromString(data)
    edit(message)
    return message.SerializeToString()
