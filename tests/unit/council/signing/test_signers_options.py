"""The options that name a signer: exactly one, one password, and what was signed elsewhere."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path
from unittest import mock

import click
import pytest
from click.testing import CliRunner, Result
from eth_account import Account

from chainkit.cli.change.signers import (
    SignerOptions,
    read_signature,
    signature_option,
    signer_options,
)
from chainkit.council.safe import contract_signature
from chainkit.council.signing import PRIVATE_KEY_VARIABLE, KeySigner
from chainkit.council.signing.hashes import typed_data_digest
from chainkit.errors import ConfigurationError
from support.council.signers import TYPED_DATA

SECRET = bytes(range(1, 33))
SIGNER = KeySigner("keystore", SECRET)
PASSWORD = "hush-password"
DIGEST = typed_data_digest(TYPED_DATA)
SIGNATURE = SIGNER.sign_typed_data(TYPED_DATA)


@click.command()
@signer_options("an owner")
@signature_option
@click.option("--chain", "chain_id", type=int, default=31337)
def sign(signing: SignerOptions, signature: bytes | None, chain_id: int) -> None:
    """Sign something."""
    if signature:
        click.echo(signature.hex())
        return
    click.echo(signing.open(chain_id).address)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHAINKIT_KEYSTORE", "CHAINKIT_PASSWORD_FILE", PRIVATE_KEY_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    path = tmp_path / "alice.json"
    path.write_text(json.dumps(Account.encrypt(SECRET, PASSWORD, kdf="pbkdf2", iterations=1)))
    return path


def run(*arguments: object, typed: str | None = None) -> Result:
    with mock.patch("chainkit.terminal.passwords._has_terminal", return_value=typed is not None):
        runner = CliRunner(mix_stderr=False)
        return runner.invoke(sign, [str(argument) for argument in arguments], input=typed)


def everything_said(result: Result) -> str:
    trace = traceback.format_exception(result.exception) if result.exception else []
    return result.stdout + result.stderr + "".join(trace)


def pipe_with(content: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


# ------------------------------------------------------------------ exactly one


def test_open__nothing_named__names_the_options() -> None:
    result = run()

    assert result.exit_code == 2
    assert "signing needs --keystore FILE or --account ALIAS" in result.stderr


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("--keystore", "--account"), "--keystore (or CHAINKIT_KEYSTORE) and --account"),
        (("--keystore", PRIVATE_KEY_VARIABLE), "--keystore (or CHAINKIT_KEYSTORE) and CHAINKIT_"),
        (("--account", PRIVATE_KEY_VARIABLE), "--account and CHAINKIT_PRIVATE_KEY"),
    ],
)
def test_open__two_named__is_refused_with_both(
    keystore: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], words: str
) -> None:
    options = {"--keystore": str(keystore), "--account": "council-1"}
    if PRIVATE_KEY_VARIABLE in names:
        monkeypatch.setenv(PRIVATE_KEY_VARIABLE, SECRET.hex())
    arguments = [word for name in names if name in options for word in (name, options[name])]

    result = run(*arguments)

    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert SECRET.hex() not in everything_said(result)


def test_open__two_passwords__is_refused(keystore: Path, tmp_path: Path) -> None:
    result = run(
        "--keystore", keystore, "--password-file", tmp_path / "password", "--password-fd", 9
    )

    assert result.exit_code == 2
    assert "one password is enough" in result.stderr


# ------------------------------------------------------------------ keystores


def test_open__keystore_and_typed_password__is_its_account(keystore: Path) -> None:
    result = run("--keystore", keystore, typed=PASSWORD + "\n")

    assert result.stdout.endswith(SIGNER.address + "\n")
    assert PASSWORD not in everything_said(result)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_open__password_through_a_descriptor__is_read_once_and_closed(
    keystore: Path, ending: str
) -> None:
    descriptor = pipe_with((PASSWORD + ending).encode())

    result = run("--keystore", keystore, "--password-fd", descriptor)

    assert result.stdout == SIGNER.address + "\n"
    assert is_closed(descriptor)
    assert PASSWORD not in everything_said(result)


def test_open__wrong_password_through_a_descriptor__is_not_said(keystore: Path) -> None:
    result = run("--keystore", keystore, "--password-fd", pipe_with(b"hush-other"))

    assert "expected its password, got another password" in str(result.exception)
    assert "hush" not in everything_said(result)


def test_open__password_that_is_no_text__is_refused_without_it(keystore: Path) -> None:
    descriptor = pipe_with(b"hush-\xff")

    result = run("--keystore", keystore, "--password-fd", descriptor)

    assert str(result.exception) == (
        f"--password-fd {descriptor}: expected UTF-8 text, got other bytes"
    )
    assert "hush" not in everything_said(result)


def test_open__descriptor_that_is_not_open__is_one_sentence(keystore: Path) -> None:
    descriptor = pipe_with(b"")
    os.close(descriptor)

    result = run("--keystore", keystore, "--password-fd", descriptor)

    assert str(result.exception) == (
        f"--password-fd {descriptor}: expected a descriptor open for reading, "
        "got Bad file descriptor"
    )


@pytest.mark.parametrize("descriptor", [1, 2, -1])
def test_open__descriptor_of_what_is_printed__is_refused(keystore: Path, descriptor: int) -> None:
    assert run("--keystore", keystore, f"--password-fd={descriptor}").exit_code == 2


# ------------------------------------------------------------------ the environment


def test_open__key_in_the_environment__warns_and_keeps_it_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PRIVATE_KEY_VARIABLE, SECRET.hex())

    result = run()

    assert result.stdout == SIGNER.address + "\n"
    assert result.stderr.startswith("warning: signing with a raw key")
    assert SECRET.hex() not in everything_said(result)
    assert PRIVATE_KEY_VARIABLE not in os.environ


def test_open__key_in_the_environment_on_another_chain__is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PRIVATE_KEY_VARIABLE, SECRET.hex())

    result = run("--chain", 1)

    assert isinstance(result.exception, ConfigurationError)
    assert SECRET.hex() not in everything_said(result)


# ------------------------------------------------------------------ signatures made elsewhere


@pytest.mark.parametrize("text", [f"0x{SIGNATURE.hex()}", f"0x{SIGNATURE.hex().upper()}"])
def test_read_signature__hex_digits__are_the_bytes(text: str) -> None:
    assert read_signature(text) == SIGNATURE
    assert run("--signature", text).stdout == SIGNATURE.hex() + "\n"


@pytest.mark.parametrize("content", [f"0x{SIGNATURE.hex()}\n", SIGNATURE.hex()])
def test_read_signature__file__holds_the_bytes(tmp_path: Path, content: str) -> None:
    path = tmp_path / "signature.txt"
    path.write_text(content)

    assert read_signature(str(path)) == SIGNATURE


def test_read_signature__v_0_or_1__becomes_27_or_28() -> None:
    plain = SIGNATURE[:-1] + bytes([SIGNATURE[-1] - 27])

    assert read_signature("0x" + plain.hex()) == SIGNATURE


@pytest.mark.parametrize(
    "text", ["0x", "0x12", f"0x{SIGNATURE.hex()}00", f"0x{SIGNATURE.hex()[:-2]}", "0x" + "zz" * 65]
)
def test_read_signature__other_text__is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected 0x and 130 hex digits, got other text"):
        read_signature(text)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}", b"0x" + b"1" * 5000])
def test_read_signature__file_with_other_content__is_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "signature.txt"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match="130 hex digits"):
        read_signature(str(path))


def test_read_signature__no_such_file__names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_signature(str(tmp_path / "nowhere"))


def test_read_signature__of_a_contract__is_taken_whole() -> None:
    signature = contract_signature(b"\x5a" * 20, b"what the contract takes")

    assert read_signature(f"0x{signature.hex()}") == signature
