"""Backup account files: their contents, their outside, and bytes that are refused as one."""

from __future__ import annotations

import base64
import io
import json
import stat
from collections.abc import Callable
from typing import Any

import pytest

from chainkit.errors import ConfigurationError, MalformedData
from chainkit_client.accounts.account_file import (
    AccountNotOpened,
    SealedBy,
    open_account,
    parse_account,
    parse_account_line,
    read_sealed_account,
)
from chainkit_client.accounts.creating import write_account
from chainkit_client.history.packing import NotOpened
from support import mls
from support.client.backup_accounts import PASSPHRASE, SALT, SEED, Made, key_package

Change = Callable[[dict[str, Any]], Any]


@pytest.mark.conforms("H26")
def test_open__file_with_its_passphrase__has_the_account_and_another_opens_nothing(
    made: Made,
) -> None:
    found = read_sealed_account(io.BytesIO(made.data))

    assert open_account(found, PASSPHRASE) == made.account
    with pytest.raises(AccountNotOpened, match="the passphrase of a whole and unaltered file"):
        open_account(found, f"{PASSPHRASE}!")


def test_write__account__shows_nobody_and_is_for_its_owner_only(made: Made) -> None:
    line, past = made.data.split(b"\n", 1)

    shown = json.loads(line)
    assert shown.keys() == {"format", "version", "sealed_by", "salt", "sealed"}
    assert past.startswith(b"age-encryption.org/v1\n-> X25519 ")
    own = made.account.installation
    keys = (own.secret, own.public_key, own.credential, b"package secret", b"hello")
    held = made.data + base64.b64decode(shown["sealed"])
    for each in keys:
        for form in (each, each.hex().encode(), base64.b64encode(each)):
            assert form not in held
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


def test_write__where_there_is_a_file__leaves_it(made: Made, tmp_path: Any) -> None:
    path = tmp_path / "other.account"
    path.write_bytes(b"precious")
    given = made.account, path, SealedBy.PASSPHRASE, SALT, PASSPHRASE, made.laptop.store

    with pytest.raises(ConfigurationError, match="no file yet"):
        write_account(*given)

    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("kept", [0, 1, 200, -1])
def test_read__line_that_was_cut__is_no_account(made: Made, kept: int) -> None:
    line = made.data[: made.data.index(b"\n") + 1]

    with pytest.raises(MalformedData, match="a line of JSON, with its end"):
        read_sealed_account(io.BytesIO(line[:kept]))


@pytest.mark.parametrize("kept", [0, 100, 300, -1])
def test_load__past_that_was_cut__is_refused_whole(made: Made, kept: int) -> None:
    past = made.data.split(b"\n", 1)[1][:kept]
    key, phone = made.account.history_key, made.laptop
    assert key is not None

    with pytest.raises(NotOpened):
        phone.load(past, key, [made.account.installation.public_key])


def without_role() -> bytes:
    return key_package(extensions=mls.numbers(), leaf_extensions=mls.vector(b""))


SPOOFED: dict[str, tuple[Change, str]] = {
    "another inbox": (lambda one: {**one, "inbox": "0x" + "cd" * 32}, "of this backup"),
    "another secret": (lambda one: {**one, "secret": "0x" + "07" * 32}, "of one installation"),
    "no key package": (lambda one: {**one, "key_packages": []}, "of one installation"),
    "a package that speaks": (
        lambda one: {**one, "key_packages": [packaged(without_role())]},
        "of this backup",
    ),
    "another's package": (
        lambda one: {**one, "key_packages": [packaged(key_package(seed=b"\6" * 32))]},
        "of this backup",
    ),
    "no package": (lambda one: {**one, "key_packages": [packaged(b"x")]}, "key packages"),
    "no key": (lambda one: {**one, "history_key": "AGE-SECRET-KEY-1"}, "an age identity"),
    "a list": (lambda one: [one], "an object"),
}


def packaged(public: bytes) -> dict[str, str]:
    return {"public": base64.b64encode(public).decode(), "secret": ""}


def content(made: Made) -> dict[str, Any]:
    own = made.account.installation
    return {
        "inbox": f"0x{made.account.inbox_id.hex()}",
        "installation": f"0x{own.public_key.hex()}",
        "secret": f"0x{SEED.hex()}",
        "key_packages": [packaged(key_package())],
        "created_ns": 1,
        "history_key": None,
        "unknown": "is ignored",
    }


@pytest.mark.parametrize("what", SPOOFED)
def test_parse__account_whose_parts_do_not_belong_together__is_refused(
    made: Made, what: str
) -> None:
    whole = content(made)
    assert parse_account(json.dumps(whole).encode()).installation.is_backup
    change, expected = SPOOFED[what]

    with pytest.raises(MalformedData, match=expected):
        parse_account(json.dumps(change(whole)).encode())


def test_parse__line_of_another_version_or_secret__is_refused(made: Made) -> None:
    line = json.loads(made.data.split(b"\n", 1)[0])

    for name, value in (("version", 2), ("format", "x"), ("sealed_by", "trust"), ("salt", "0x00")):
        with pytest.raises(MalformedData):
            parse_account_line(json.dumps({**line, name: value}).encode())


def test_open__account_whose_opening_would_take_hours__is_refused(made: Made) -> None:
    found = read_sealed_account(io.BytesIO(made.data))
    first, _, rest = found.sealed.partition(b"\n")
    stanza, _, rest = rest.partition(b"\n")
    costly = stanza.rpartition(b" ")[0] + b" 40"
    spoofed = type(found)(found.sealed_by, found.salt, b"\n".join((first, costly, rest)))

    with pytest.raises(AccountNotOpened):
        open_account(spoofed, PASSPHRASE)
