"""Keystores of other programs: what is taken, and what is refused before any work."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from eth_account import Account

from chainkit.errors import ConfigurationError
from chainkit.signatures import address_of
from chainkit.terminal.keystore import load_secret, write_keystore
from support.key_command import (
    ETHERS,
    KEYSTORE,
    PASSWORD,
    SECRET,
    SIGNING_KEY,
    refusal_of,
    run,
    with_crypto,
    with_derivation,
    without,
)
from support.vectors import case_name, load

OF_TOOLS = load("foreign_keystores")
SCRYPT = {"dklen": 32, "n": 2, "p": 1, "r": 8, "salt": "00" * 16}


def with_scrypt(**changes: Any) -> dict[str, Any]:
    return with_crypto(kdf="scrypt", kdfparams=SCRYPT | changes)


FOREIGN_KEYSTORES = {
    "empty": ({}, "expected an integer, got nothing (version)"),
    "no version": (without("version"), "expected an integer, got nothing (version)"),
    "no crypto": (without("crypto"), "expected an object, got nothing (crypto)"),
    "version 1": (KEYSTORE | {"version": 1}, "expected a keystore v3, got version 1 (version)"),
    "version 4": (KEYSTORE | {"version": 4}, "expected a keystore v3, got version 4 (version)"),
    "crypto is text": (KEYSTORE | {"crypto": "text"}, "expected an object, got str (crypto)"),
    "crypto twice": (KEYSTORE | {"Crypto": {}}, "more than capitals, got a field twice"),
    "another cipher": (
        with_crypto(cipher="aes-128-cbc"),
        "expected cipher aes-128-ctr, got 'aes-128-cbc' (crypto.cipher)",
    ),
    "another derivation": (with_crypto(kdf="argon2"), "got 'argon2' (crypto.kdf)"),
    "ciphertext is no hex": (with_crypto(ciphertext="zz"), "got 'zz' (crypto.ciphertext)"),
    "ciphertext is null": (with_crypto(ciphertext=None), "got None (crypto.ciphertext)"),
    "another mac": (with_crypto(mac="00"), "expected 64 hex digits, got '00' (crypto.mac)"),
    "no counter": (with_crypto(cipherparams={}), "got nothing (crypto.cipherparams.iv)"),
    "another hash": (with_derivation(prf="md5"), "expected hmac-sha256, got 'md5'"),
    "hash is null": (with_derivation(prf=None), "expected hmac-sha256, got None"),
    "no rounds": (with_derivation(c=0), "expected an integer from 1 to 16777216, got 0"),
    "rounds for hours": (with_derivation(c=2**31), "got 2147483648 (crypto.kdfparams.c)"),
    "length is text": (with_derivation(dklen="32"), "got '32' (crypto.kdfparams.dklen)"),
    "no length for a check": (
        with_derivation(dklen=16),
        "expected a key of 32 bytes, got 16 (crypto.kdfparams.dklen)",
    ),
    "length without end": (with_derivation(dklen=2**40), "a key of 32 bytes, got 1099511627776"),
    "salt is a number": (with_derivation(salt=7), "got 7 (crypto.kdfparams.salt)"),
    "scrypt of no blocks": (with_scrypt(r=0), "expected an integer from 1 to 128, got 0"),
    "scrypt of wide blocks": (with_scrypt(r=2**20), "got 1048576 (crypto.kdfparams.r)"),
    "scrypt of endless blocks": (with_scrypt(r=2**70), "(crypto.kdfparams.r)"),
    "scrypt without end": (with_scrypt(n=2**62), "(crypto.kdfparams.n)"),
    "scrypt of an odd cost": (with_scrypt(n=3), "expected a power of 2 above 1, got 3"),
    "scrypt of much memory": (with_scrypt(n=2**21), "bytes of memory for n and r up to 1073741824"),
    "scrypt of much work": (with_scrypt(n=2**20, p=16), "n times r times p up to 16777216"),
    "scrypt of many small parts": (with_scrypt(r=16, p=16), "r times p up to 128, got 256"),
    "address is a name": (KEYSTORE | {"address": "alice"}, "got 'alice' (address)"),
}


@pytest.mark.parametrize(
    ("content", "said"), FOREIGN_KEYSTORES.values(), ids=list(FOREIGN_KEYSTORES)
)
def test_show_key__foreign_keystore__is_refused_by_the_field_before_any_work(
    keystore: Path, password: Path, content: dict[str, Any], said: str
) -> None:
    keystore.write_text(json.dumps(content))

    with mock.patch.object(Account, "decrypt") as decrypt:
        result = run("show", "--keystore", keystore, "--password-file", password)

    assert said in refusal_of(result)
    assert not decrypt.called


def test_show_key__address_of_another_key__is_refused(keystore: Path, password: Path) -> None:
    other, own = "0x" + "11" * 20, address_of(SIGNING_KEY.public_key).lower()
    keystore.write_text(json.dumps(KEYSTORE | {"address": other}))

    result = run("show", "--keystore", keystore, "--password-file", password)

    assert refusal_of(result) == (
        f"keystore {keystore}: expected the key of {other}, as its address says, "
        f"got the key of {own} (address)"
    )


@pytest.mark.parametrize("address", [None, "", f"0x{KEYSTORE['address']}"])
def test_show_key__address_left_out_or_with_0x__is_taken(
    keystore: Path, password: Path, address: str | None
) -> None:
    keystore.write_text(json.dumps(KEYSTORE | {"address": address}))

    result = run("show", "--keystore", keystore, "--password-file", password)

    assert address_of(SIGNING_KEY.public_key) in result.output


def test_show_key__secret_that_is_no_key__is_refused_without_it(
    keystore: Path, password: Path
) -> None:
    with mock.patch.object(Account, "decrypt", return_value=bytes(32)):
        result = run("show", "--keystore", keystore, "--password-file", password)

    assert refusal_of(result).endswith("expected a key of secp256k1, got another number")


@pytest.mark.parametrize("typed", [ETHERS["password"], "battery staple"])
def test_show_key__keystore_of_ethers__opens_with_its_password_alone(
    keystore: Path, typed: str
) -> None:
    keystore.write_text(json.dumps(ETHERS["keystore"]))

    result = run("show", "--keystore", keystore, typed=f"{typed}\n")

    if typed == ETHERS["password"]:
        assert result.output.endswith(f"address     {ETHERS['address']}\n")
    else:
        assert refusal_of(result).endswith("expected its password, got another password")


def capitals(value: Any) -> Any:
    """A keystore whose names are all capitals."""
    if isinstance(value, dict):
        return {name.upper(): capitals(each) for name, each in value.items()}
    return value


@pytest.mark.parametrize("case", OF_TOOLS["keystores"], ids=case_name)
@pytest.mark.parametrize(
    "form", [lambda keystore: keystore, capitals], ids=["as it is", "capitals"]
)
def test_show_key__keystore_of_another_tool__opens_whatever_its_capitals(
    keystore: Path, password: Path, case: dict[str, Any], form: Any
) -> None:
    keystore.write_text(json.dumps(form(case["keystore"])))

    result = run("show", "--keystore", keystore, typed=f"{OF_TOOLS['password']}\n")

    assert result.output.endswith(f"address     {OF_TOOLS['address']}\n")


@pytest.mark.parametrize("case", OF_TOOLS["keystores"], ids=case_name)
def test_show_key__another_password_for_a_tools_keystore__is_the_reason(
    keystore: Path, case: dict[str, Any]
) -> None:
    keystore.write_text(json.dumps(case["keystore"]))

    result = run("show", "--keystore", keystore, typed="battery staple\n")

    assert refusal_of(result).endswith("expected its password, got another password")


def test_show_key__byte_order_marks__are_taken(keystore: Path, password: Path) -> None:
    for path in (keystore, password):
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())

    result = run("show", "--keystore", keystore, "--password-file", password)

    assert address_of(SIGNING_KEY.public_key) in result.output


def test_write_keystore__counter_that_begins_with_zeros__is_written_whole(tmp_path: Path) -> None:
    encrypted = with_crypto(cipherparams={"iv": "1234"})

    with mock.patch.object(Account, "encrypt", return_value=encrypted):
        write_keystore(tmp_path / "key.json", SECRET, PASSWORD)

    written = json.loads((tmp_path / "key.json").read_text())
    assert written["crypto"]["cipherparams"]["iv"] == "1234".zfill(32)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected JSON, got"),
        (b"\xff", "expected JSON, got"),
        (60_000 * b"[", "within each other, got more"),
        (2**16 * b" " + b"{}", "expected at most 65536 bytes, got more"),
        (b'{"crypto": {}, "crypto": {}}', "got 'crypto' twice"),
        (b"[]", "expected an object, got list"),
        (b'"text"', "expected an object, got str"),
    ],
)
def test_load_secret__file_that_is_no_keystore__says_what_it_is(
    keystore: Path, password: Path, content: bytes, said: str
) -> None:
    keystore.write_bytes(content)

    with pytest.raises(ConfigurationError, match=said):
        load_secret(keystore, password)
