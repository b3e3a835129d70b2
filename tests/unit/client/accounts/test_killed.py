"""A restore that is killed in each of its six steps: what is left, and how it goes on."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainkit.errors import MalformedData
from chainkit_client.accounts import restoring
from chainkit_client.accounts.account_file import BackupAccount, open_account, read_sealed_account
from chainkit_client.groups.transcript import insert_message
from chainkit_client.history.loading import Loaded
from chainkit_client.storage import imported
from chainkit_client.storage.store import Store
from support.client.asking_devices import held_bytes, killed_after
from support.client.backup_accounts import PASSPHRASE, Made
from support.client.group_network import memory_folder
from support.client.history_devices import (
    BEGIN_NS,
    GROUP,
    INBOX,
    HistoryDevice,
    insert_joined,
    text,
)

STEPS: dict[str, tuple[Any, str]] = {
    "1: the file was opened": (restoring, "check_account"),
    "2: the database was made": (restoring.Store, "open"),
    "2: it has the account": (restoring, "_fill"),
    "3: a part was received": (asyncio, "sleep"),
    "4: the messages were written": (restoring, "write"),
    "5: a page of them was stored": (imported, "finish_file"),
    "5: they were imported": (restoring, "_handed_over"),
    "6: a file of the database was deleted": (os, "unlink"),
    "6: all was deleted": (shutil, "rmtree"),
}
WORDS = [b"hello", b"later", b"there"]


class Network:
    """A messenger whose network has one message for a backup, which the file lacks."""

    def __init__(self, store: Store, key: bytes, inbox: set[bytes]) -> None:
        self.inbox_id = INBOX
        self._store = store
        self._inbox = inbox
        self._is_read = False

    async def find_inbox(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(id=INBOX, installations=tuple(self._inbox))

    async def sync(self) -> dict[bytes, SimpleNamespace]:
        rounds = {GROUP: SimpleNamespace(outcomes=[1], reorgs=0, waits_for_chain=False)}
        if self._is_read:
            return {}
        self._is_read = True
        with self._store.writing() as connection:
            insert_joined(connection, GROUP)
            insert_message(connection, self._store.seal, text(b"later", None, BEGIN_NS + 2))
        return rounds


class Phone:
    """The home of a new device, which the account's person restores to."""

    def __init__(self, folder: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder
        self.made = made
        self.device = HistoryDevice(folder, 2)
        self.inbox = {self.device.key, made.account.installation.public_key}
        monkeypatch.setattr(restoring, "opened_on", self.opened_on)

    @asynccontextmanager
    async def opened_on(self, store: Store, *_: Any) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(store=store, messenger=self.network(store))

    def network(self, store: Store) -> Network:
        return Network(store, self.device.key, self.inbox)

    def restore(self, account: BackupAccount | None = None) -> Loaded:
        client = SimpleNamespace(
            store=self.device.store, chain=None, messenger=self.network(self.device.store)
        )
        past = io.BytesIO(self.made.data)
        read_sealed_account(past)
        found = account or self.made.account
        given = cast(Any, client), cast(Any, None), self.home, found, past
        return asyncio.run(restoring.restore(*given))

    def left(self) -> list[str]:
        names = {each.name for each in self.home.iterdir()}
        return sorted(each for each in names if not each.startswith(self.device.path.name))


@pytest.fixture
def phone(made: Made, monkeypatch: pytest.MonkeyPatch) -> Any:
    with memory_folder() as name:
        found = Phone(Path(name), made, monkeypatch)
        yield found
        found.device.store.close()


def secrets_of(account: BackupAccount) -> list[bytes]:
    """All that opens something, in each form in which it could be written, and the words."""
    own, [package] = account.installation, account.key_packages
    assert account.history_key is not None
    keys = [own.secret, package.secret, account.history_key.encode(), PASSPHRASE.encode()]
    forms = [(each, each.hex().encode(), base64.b64encode(each)) for each in (*keys, *WORDS)]
    return [form for several in forms for form in several]


@pytest.mark.conforms("H27")
@pytest.mark.parametrize("step", STEPS)
def test_restore__killed_in_a_step__leaves_nothing_in_the_clear_and_begins_again(
    phone: Phone, step: str
) -> None:
    killed_after(*STEPS[step], phone.restore)

    held = held_bytes(phone.home)
    assert [each for each in secrets_of(phone.made.account) if each in held] == []
    assert b"age-encryption.org" not in held
    was_there = sorted(phone.device.words())
    assert was_there in ([], WORDS)

    loaded = phone.restore()

    assert sorted(phone.device.words()) == WORDS
    assert loaded.new + len(was_there) == len(WORDS)
    assert phone.left() == []


@pytest.mark.conforms("H28")
def test_temporary_client__its_use_fails__is_deleted_all_the_same(phone: Phone) -> None:
    async def fail() -> None:
        past = io.BytesIO(phone.made.data)
        read_sealed_account(past)
        given = cast(Any, None), cast(Any, None), phone.home, phone.made.account, past
        async with restoring.temporary_client(*given) as backup:
            assert len(phone.left()) == 1
            assert backup.store.name.startswith(str(phone.home / "restoring-"))
            raise MalformedData("request", "one that waits", "none")

    with pytest.raises(MalformedData, match="one that waits"):
        asyncio.run(fail())

    assert phone.left() == []
    assert phone.device.words() == []


def test_restore__beside_another_one__leaves_the_others_folder(phone: Phone) -> None:
    with restoring._temporary_folder(phone.home) as other:
        (other / "client.db").write_bytes(b"in use")

        phone.restore()

        assert (other / "client.db").read_bytes() == b"in use"
    assert phone.left() == []


@pytest.mark.parametrize("inbox", ["revoked", "another person's"])
def test_restore__account_that_is_not_of_the_inbox__imports_nothing(
    phone: Phone, inbox: str
) -> None:
    account = phone.made.account
    if inbox == "revoked":
        phone.inbox.discard(account.installation.public_key)
    else:
        own = account.installation
        other = type(own)(b"cd" * 32, own.public_key, own.secret, True)
        account = type(account)(other, account.key_packages, 1, account.history_key)

    with pytest.raises(MalformedData, match="backup account: expected one"):
        phone.restore(account)

    assert (phone.device.words(), phone.left()) == ([], [])


def test_restore__past_of_another_account__imports_nothing(phone: Phone) -> None:
    """The line of one file, and the history of another one."""
    past = io.BytesIO(phone.made.data)
    line = read_sealed_account(past)
    found = open_account(line, PASSPHRASE)
    swapped = type(found)(found.installation, found.key_packages, 1, None)

    with pytest.raises(MalformedData, match="its line alone"):
        phone.restore(swapped)

    assert (phone.device.words(), phone.left()) == ([], [])
