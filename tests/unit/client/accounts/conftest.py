"""A backup account, whose file is written once: to seal one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainkit.protocol.mls.key_package import BACKUP_ROLE, ROLE_EXTENSION
from chainkit_client.accounts.account_file import BackupAccount, SealedBy
from chainkit_client.accounts.creating import write_account
from chainkit_client.history.packing import new_key
from chainkit_client.mls.engine import Installation, KeyPackage
from support import mls
from support.client.group_network import memory_folder
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


@pytest.fixture(scope="session")
def made() -> Iterator[Made]:
    with memory_folder() as name:
        folder = Path(name)
        laptop = HistoryDevice(folder, 1)
        laptop.join()
        laptop.read(text(b"hello", (NODE, 1)), text(b"there", (NODE, 2), BEGIN_NS + 1))
        found, path = account(), folder / "backup.account"
        write_account(found, path, SealedBy.PASSPHRASE, SALT, PASSPHRASE, laptop.store)
        yield Made(found, path, path.read_bytes(), laptop)
        laptop.store.close()
