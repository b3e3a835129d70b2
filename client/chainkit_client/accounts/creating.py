"""Makes a backup account file, and puts its installation into inbox and groups (XIP-31).

The file comes first: an installation in the inbox without its file would read for nobody. Each step
may be repeated, so that what was interrupted goes on with the same file.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError
from chainkit.signatures import SigningKey
from chainkit_client.accounts.account_file import BackupAccount, SealedBy
from chainkit_client.history.packing import new_key, recipient_of
from chainkit_client.history.saving import Saved, write
from chainkit_client.home import Client
from chainkit_client.mls.engine import Installation, MlsEngine
from chainkit_client.storage.store import Store

_PRIVATE: Final = 0o600


def new_account(engine: MlsEngine, inbox_id: bytes) -> BackupAccount:
    """Make the keys of a backup in an inbox of 32 bytes."""
    made = engine.new_installation(inbox_id.hex().encode())
    own = Installation(made.credential, made.public_key, made.secret, is_backup=True)
    package = engine.new_key_package(own)
    return BackupAccount(own, (package,), time.time_ns(), new_key())


def write_account(
    account: BackupAccount,
    path: Path,
    sealed_by: SealedBy,
    salt: bytes,
    passphrase: str,
    store: Store,
    since_ns: int = 0,
) -> Saved:
    """Write an account with the messages that a database has, to a new file.

    The file appears whole, for its owner only. ``since_ns`` leaves out older messages, in
    nanoseconds since 1970. Raises StoreError, and ConfigurationError where there is a file, or none
    can be written.
    """
    assert account.history_key is not None
    sealed = account.sealed(sealed_by, salt, passphrase)
    try:
        with moved_into_place(path) as partial:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(sealed.line())
                recipient = recipient_of(account.history_key)
                saved = write(store, file, recipient, since_ns, account.installation)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                raise ConfigurationError(f"file {path}", "no file yet", "one")
    except OSError as error:
        got = os.strerror(error.errno or 0)
        raise ConfigurationError(f"file {path}", "a file that can be written", got) from error
    return saved


async def register_account(client: Client, wallet: SigningKey, account: BackupAccount) -> int:
    """Put an account into the inbox and into all groups of a client; return how many groups.

    Raises the network's errors, and NotSettled: what is done stays done.
    """
    messenger, key = client.messenger, account.installation.public_key
    await messenger.register_backup(wallet, account.installation, account.key_packages[0])
    name, count = messenger.inbox_id.hex(), 0
    await messenger.sync()
    for group in messenger.groups():
        if not group.is_joined:
            continue
        count += 1
        if all(each.public_key != key for each in messenger.members(group.id)):
            await messenger.add(group.id, [name])
    await messenger.settle()
    return count
