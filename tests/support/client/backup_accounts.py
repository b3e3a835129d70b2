"""A backup account in a file: to seal one takes seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chainkit.protocol.mls.key_package import BACKUP_ROLE, ROLE_EXTENSION
from chainkit_client.accounts.account_file import BackupAccount, SealedBy
from chainkit_client.accounts.creating import write_account
from chainkit_client.history.packing import new_key
from chainkit_client.mls.engine import Installation, KeyPackage
from support import mls
from support.client.history_devices import BEGIN_NS, INBOX, NODE, HistoryDevice, text

PASSPHRASE = "a long walk in the rain"
SALT = bytes(range(16))
SEED = b"\5" * 32


def key_package(**changed: bytes) -> bytes:
    """An MLSMessage with the backup's key package."""
    fields = {
        "seed": SEED,
        "credential": b"\0\1" + mls.vector(INBOX.hex().encode()),
        "extensions": mls.numbers(ROLE_EXTENSION),
        "leaf_extensions": mls.vector(ROLE_EXTENSION.to_bytes(2, "big") + mls.vector(BACKUP_ROLE)),
    }
    return b"\0\1\0\5" + mls.KeyPackageFields(**fields | changed).written()


def account(public: bytes = b"", seed: bytes = SEED) -> BackupAccount:
    key = mls.KeyPackageFields(seed=SEED).installation_key
    own = Installation(INBOX.hex().encode(), key, seed, is_backup=True)
    package = KeyPackage(public or key_package(), b"package secret")
    return BackupAccount(own, (package,), BEGIN_NS, new_key())


@dataclass(frozen=True)
class Made:
    """A laptop with two messages, and the account file that it wrote."""

    account: BackupAccount
    path: Path
    data: bytes
    laptop: HistoryDevice


def written(folder: Path, name: str, sealed_by: SealedBy, passphrase: str) -> Made:
    """Seal an account of a laptop with two messages."""
    laptop = HistoryDevice(folder, 1)
    laptop.join()
    laptop.read(text(b"hello", (NODE, 1)), text(b"there", (NODE, 2), BEGIN_NS + 1))
    found, path = account(), folder / name
    write_account(found, path, sealed_by, SALT, passphrase, laptop.store)
    return Made(found, path, path.read_bytes(), laptop)
