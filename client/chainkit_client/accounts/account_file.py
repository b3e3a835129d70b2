"""A backup account file: one line of JSON, then a history file.

::

    {"format":"chainkit backup account","version":1,"sealed_by":"passphrase","salt":"0x…",
     "sealed":BASE64}
    age-encryption.org/v1 …

``sealed`` is a file of age, which a passphrase opens (scrypt): a JSON object with the keys of an
installation and of its key packages, and the key of the history file behind the line. The line
names nobody. Readers ignore fields that they do not know.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import BinaryIO, Final

import pyrage
from Crypto.Signature import eddsa

from chainkit.documents.fields import Fields, parse_json
from chainkit.errors import ConfigurationError, MalformedData, MalformedMls
from chainkit.protocol.mls.key_package import parse_key_package
from chainkit_client.mls.engine import Installation, KeyPackage

SALT_LENGTH: Final = 16
MOST_LINE_BYTES: Final = 1 << 20
MOST_KEY_PACKAGES: Final = 100

_FORMAT: Final = "chainkit backup account"
_VERSION: Final = 1
_KEY_LENGTH: Final = 32
_LARGEST: Final = 2**63 - 1
_SUBJECT: Final = "backup account file"
_TEXT: Final = re.compile(".*", re.DOTALL)
_IDENTITY: Final = re.compile("AGE-SECRET-KEY-1[0-9A-Z]{58}")
_KEY_PACKAGE_HEAD: Final = b"\0\1\0\5"
"""MLSMessage of version 1, with a KeyPackage (RFC 9420 §6)."""


class SealedBy(StrEnum):
    """The kind of secret that opens a file."""

    PASSPHRASE = "passphrase"
    WALLET = "wallet"


class AccountNotOpened(MalformedData):
    """The passphrase or the wallet is another one, or the file was cut or altered."""


@dataclass(frozen=True, slots=True)
class SealedAccount:
    """The first line of a file."""

    sealed_by: SealedBy
    salt: bytes
    """16 random bytes, which the text has that a wallet signs."""
    sealed: bytes = field(repr=False)

    def line(self) -> bytes:
        """Return the line with its end."""
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "sealed_by": self.sealed_by.value,
            "salt": f"0x{self.salt.hex()}",
            "sealed": base64.b64encode(self.sealed).decode(),
        }
        return json.dumps(content, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class BackupAccount:
    """An installation that only reads, with all keys that reading takes."""

    installation: Installation
    key_packages: tuple[KeyPackage, ...]
    """Each opens any number of welcomes: nobody is there to offer a new one."""
    created_ns: int
    """Nanoseconds since 1970."""
    history_key: str | None = field(repr=False)
    """The age identity that opens the history behind the line; None where there is none."""

    @property
    def inbox_id(self) -> bytes:
        """32 bytes."""
        return bytes.fromhex(self.installation.credential.decode())

    def sealed(self, sealed_by: SealedBy, salt: bytes, passphrase: str) -> SealedAccount:
        """Return the first line; whoever has the passphrase and the file has the account."""
        own = self.installation
        content = {
            "inbox": f"0x{self.inbox_id.hex()}",
            "installation": f"0x{own.public_key.hex()}",
            "secret": f"0x{own.secret.hex()}",
            "key_packages": [
                {"public": _text(each.public), "secret": _text(each.secret)}
                for each in self.key_packages
            ],
            "created_ns": self.created_ns,
            "history_key": self.history_key,
        }
        sealed = pyrage.passphrase.encrypt(json.dumps(content).encode(), passphrase)
        return SealedAccount(sealed_by, salt, sealed)


def read_sealed_account(file: BinaryIO) -> SealedAccount:
    """Return the first line, and leave the file at the history behind it. Raises MalformedData."""
    line = file.readline(MOST_LINE_BYTES + 1)
    if len(line) > MOST_LINE_BYTES or not line.endswith(b"\n"):
        raise MalformedData(_SUBJECT, "a line of JSON, with its end", "another file, or a part")
    return parse_account_line(line)


def parse_account_line(line: bytes) -> SealedAccount:
    """Return the first line of a file. Raises MalformedData for another format or version."""
    try:
        fields = Fields(parse_json(line, _SUBJECT), _SUBJECT)
        found = fields.matching("format", _TEXT, "a text")[0], fields.integer("version")
        if found != (_FORMAT, _VERSION):
            got = f"{found[0][:40]} {found[1]}"
            raise MalformedData(_SUBJECT, f"{_FORMAT} {_VERSION}", got)
        sealed_by = fields.matching("sealed_by", _TEXT, "a text")[0]
        if sealed_by not in set(SealedBy):
            raise MalformedData(_SUBJECT, "a passphrase or a wallet", sealed_by[:40])
        salt = fields.bytes("salt", SALT_LENGTH)
        return SealedAccount(SealedBy(sealed_by), salt, _data(fields, "sealed"))
    except ConfigurationError as error:
        raise _malformed(error) from error


def open_account(found: SealedAccount, passphrase: str) -> BackupAccount:
    """Return the account that a passphrase opens.

    Raises AccountNotOpened, and MalformedData for what no account file has in it.
    """
    try:
        content = pyrage.passphrase.decrypt(found.sealed, passphrase)
    except pyrage.DecryptError as error:
        secret = "passphrase" if found.sealed_by is SealedBy.PASSPHRASE else "wallet"
        expected = f"the {secret} of a whole and unaltered file"
        raise AccountNotOpened(_SUBJECT, expected, "another") from error
    return parse_account(content)


def parse_account(content: bytes) -> BackupAccount:
    """Return what was sealed. Raises MalformedData where its parts do not belong together."""
    try:
        fields = Fields(parse_json(content, _SUBJECT), _SUBJECT)
        inbox_id = fields.bytes("inbox", _KEY_LENGTH)
        seed = fields.bytes("secret", _KEY_LENGTH)
        public_key = fields.bytes("installation", _KEY_LENGTH)
        installation = Installation(inbox_id.hex().encode(), public_key, seed, is_backup=True)
        packages = [
            _key_package(Fields(value, _SUBJECT, path), installation)
            for value, path in fields.elements("key_packages")[:MOST_KEY_PACKAGES]
        ]
        key = None
        if not fields.is_null("history_key"):
            key = fields.matching("history_key", _IDENTITY, "an age identity")[0]
        created_ns = fields.integer("created_ns", _LARGEST)
    except ConfigurationError as error:
        raise _malformed(error) from error
    public = eddsa.import_private_key(seed).public_key().export_key(format="raw")
    if public != public_key or not packages:
        raise MalformedData(_SUBJECT, "the keys of one installation", "others")
    return BackupAccount(installation, tuple(packages), created_ns, key)


def _key_package(fields: Fields, installation: Installation) -> KeyPackage:
    public, secret = _data(fields, "public"), _data(fields, "secret")
    try:
        package = parse_key_package(public.removeprefix(_KEY_PACKAGE_HEAD))
    except MalformedMls as error:
        raise MalformedData(_SUBJECT, "key packages", error, fields.path("public")) from error
    # The account of a file must not speak: a key package without the role would let it.
    offers = package.installation_key, package.credential, package.is_backup
    if offers != (installation.public_key, installation.credential, True):
        raise MalformedData(_SUBJECT, "key packages of this backup", "others")
    return KeyPackage(public, secret)


def _data(fields: Fields, name: str) -> bytes:
    text: str = fields.matching(name, _TEXT, "base64")[0]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedData(_SUBJECT, "base64", error, fields.path(name)) from error


def _malformed(error: ConfigurationError) -> MalformedData:
    return MalformedData(error.subject, error.expected, error.got, error.place)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
