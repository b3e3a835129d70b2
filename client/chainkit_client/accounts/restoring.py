"""Reads the past with a backup account: a temporary client, which leaves nothing behind (XIP-31).

The six steps of a direct restore: the file is opened; a client is made in a folder of its own; it
receives all that the network has for it; its messages are written to a history file; the own client
imports that file in one transaction; folder and file are deleted. The temporary database has a
random password, which is never written: a process that is killed leaves bytes that nobody opens,
and the next restore deletes them and begins again.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from chainkit.errors import ConfigurationError, MalformedData
from chainkit_client.accounts.account_file import BackupAccount
from chainkit_client.history.loading import Loaded, load
from chainkit_client.history.packing import new_key, recipient_of
from chainkit_client.history.saving import write
from chainkit_client.home import Client, Settings, opened_on
from chainkit_client.messenger import Messenger
from chainkit_client.network.chain import Chain
from chainkit_client.storage.own import insert_installation, insert_key_package
from chainkit_client.storage.store import Store

_PREFIX: Final = "restoring-"
_DATABASE: Final = "client.db"
_MOST_ROUNDS: Final = 20
_PAUSE_SECONDS: Final = 0.25
_PASSWORD_BYTES: Final = 32


async def check_account(messenger: Messenger, account: BackupAccount) -> None:
    """Check that an account is of the own inbox now, by the chain.

    Raises MalformedData for another person's account, and a revoked or made-up one; and the
    network's errors.
    """
    if account.inbox_id != messenger.inbox_id:
        expected = f"one of inbox {messenger.inbox_id.hex()}"
        raise MalformedData("backup account", expected, f"one of {account.inbox_id.hex()}")
    inbox = await messenger.find_inbox(messenger.inbox_id.hex())
    if account.installation.public_key not in inbox.installations:
        expected = "one that is in the inbox now"
        raise MalformedData("backup account", expected, "one that was revoked, or never added")


async def restore(
    client: Client, settings: Settings, folder: Path, account: BackupAccount, past: BinaryIO
) -> Loaded:
    """Import all that a backup account reads, and what was written behind its line: ``past``.

    Raises MalformedData, StoreError and the network's errors: the same call begins again.
    """
    await check_account(client.messenger, account)
    async with temporary_client(client.chain, settings, folder, account, past) as backup:
        await receive(backup.messenger)
        return await asyncio.to_thread(_handed_over, client.store, backup.store, account, folder)


@asynccontextmanager
async def temporary_client(
    chain: Chain, settings: Settings, folder: Path, account: BackupAccount, past: BinaryIO
) -> AsyncIterator[Client]:
    """Open a client of a backup account in a folder of its own, which is deleted afterwards."""
    with _temporary_folder(folder) as own_folder:
        password = secrets.token_hex(_PASSWORD_BYTES)
        store = Store.open(own_folder / _DATABASE, password)
        try:
            await asyncio.to_thread(_fill, store, account, past)
            async with opened_on(store, chain, settings, own_folder) as client:
                yield client
        finally:
            store.close()


async def receive(messenger: Messenger) -> None:
    """Read until the network has nothing new. Raises its errors."""
    for _ in range(_MOST_ROUNDS):
        rounds = await messenger.sync()
        is_new = any(one.outcomes or one.reorgs for one in rounds.values())
        waits = any(one.waits_for_chain for one in rounds.values())
        if not is_new and not waits:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


def _fill(store: Store, account: BackupAccount, past: BinaryIO) -> None:
    own = account.installation
    with store.writing() as connection:
        insert_installation(connection, store.seal, own)
        for package in account.key_packages:
            insert_key_package(connection, store.seal, package, account.created_ns)
    if account.history_key is not None:
        load(store, past, account.history_key, account.inbox_id, [own.public_key])
    elif past.read(1):
        raise MalformedData("backup account file", "its line alone", "more behind it")


def _handed_over(store: Store, backup: Store, account: BackupAccount, folder: Path) -> Loaded:
    """Write what the backup has to a nameless file, and import it."""
    key = new_key()
    with tempfile.TemporaryFile(dir=folder) as file:
        write(backup, file, recipient_of(key))
        file.seek(0)
        return load(store, file, key, account.inbox_id, [account.installation.public_key])


@contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder that is deleted, with all that earlier restores left."""
    for each in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError), _locked(each):
            shutil.rmtree(each)
    made = folder / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        made.mkdir(mode=0o700)
    except OSError as error:
        got = os.strerror(error.errno or 0)
        raise ConfigurationError(f"folder {folder}", "one that takes folders", got) from error
    try:
        with _locked(made):
            yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which ends with the process. Raises OSError where another has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
