"""The page that converts a backup account file, in a real browser without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.identity.text import eip191_digest
from chainkit.signatures import SigningKey, address_of
from chainkit_client.accounts.account_file import SealedBy
from chainkit_client.accounts.passphrases import new_wallet_passphrase, signed_text
from chainkit_client.history.packing import new_key, recipient_of
from support.client.backup_accounts import PASSPHRASE, SALT, Made, written
from support.client.history_devices import HistoryDevice
from support.command_line import run
from support.project import ROOT

WALLET = SigningKey(b"\7" * 32)
PATIENCE = 200


def sign(text: bytes) -> bytes:
    signature = WALLET.sign(eip191_digest(text))
    return signature[:64] + bytes([27 + signature[64]])


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "convert.html"
    assert run("client", "history", "account", "page", path).code == 0
    return path


@pytest.fixture
def key(tmp_path: Path) -> tuple[str, str]:
    """A key that the other device made, and its recipient."""
    path = tmp_path / "past.key"
    done = run("client", "history", "key", path, "--json")
    found = path.read_text().strip()
    assert done.content == {"recipient": recipient_of(found)}
    return found, recipient_of(found)


def converted(page: Path, account: Path, secret: str, recipient: str) -> dict[str, Any]:
    node = shutil.which("node")
    assert node is not None
    words = [ROOT / "tests" / "browser" / "account_page.mjs", page, account, secret, recipient]
    done = subprocess.run(
        [node, *words, page.parent], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("made")
    found = written(folder, "backup.account", SealedBy.PASSPHRASE, PASSPHRASE)
    yield found
    found.laptop.store.close()


def check_silent(found: dict[str, Any]) -> None:
    """The page asked nobody, kept nothing, and could not ask."""
    assert found["others"] == []
    assert found["complaints"] == []
    assert found["kept"] == [0, 0, 0]
    assert {"connect-src", "img-src"} <= set(found["blocked"])


def loaded(made: Made, folder: Path, key: str) -> list[bytes]:
    """The words that the file brings to another device."""
    phone = HistoryDevice(folder, 2)
    try:
        data = (folder / "past.age").read_bytes()
        phone.load(data, key, [made.account.installation.public_key])
        return phone.words()
    finally:
        phone.store.close()


@pytest.mark.conforms("H28")
def test_page__file_with_its_passphrase_offline__makes_what_the_other_device_loads(
    page: Path, key: tuple[str, str], made: Made
) -> None:
    found = converted(page, made.path, PASSPHRASE, key[1])

    assert found["isMade"], found["told"]
    assert made.account.installation.public_key.hex() in found["told"]
    assert found["fields"] == ["", "", ""]
    check_silent(found)
    assert loaded(made, page.parent, key[0]) == [b"hello", b"there"]


def test_page__file_that_a_wallet_sealed__asks_for_the_signature_of_the_same_text(
    page: Path, key: tuple[str, str]
) -> None:
    address = address_of(WALLET.public_key).lower()
    passphrase = new_wallet_passphrase(SALT, address, sign)
    folder = page.parent / "made"
    folder.mkdir()
    made = written(folder, "backup.account", SealedBy.WALLET, passphrase)
    made.laptop.store.close()

    found = converted(page, made.path, f"0x{sign(signed_text(SALT)).hex()}", key[1])

    assert found["asked"] == signed_text(SALT).decode()
    assert found["isMade"], found["told"]
    check_silent(found)
    assert loaded(made, page.parent, key[0]) == [b"hello", b"there"]


@pytest.mark.parametrize("damage", ["wrong passphrase", "cut past", "cut line"])
def test_page__file_that_does_not_open__makes_nothing(page: Path, made: Made, damage: str) -> None:
    account = page.parent / "damaged.account"
    lengths = {"wrong passphrase": len(made.data), "cut past": len(made.data) - 1, "cut line": 300}
    account.write_bytes(made.data[: lengths[damage]])
    secret = "another passphrase" if damage == "wrong passphrase" else PASSPHRASE

    found = converted(page, account, secret, recipient_of(new_key()))

    assert not found["isMade"]
    assert not (page.parent / "past.age").exists()
    check_silent(found)
