import codecs
import json
import os
import stat
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result
from eth_account import Account

from chainkit.cli.key import key
from chainkit.cli.main import main
from chainkit.errors import ConfigurationError
from chainkit.signatures import SigningKey, address_of
from chainkit.terminal.keystore import load_secret, load_signing_key, write_keystore
from support.vectors import load

SECRET = bytes(range(1, 33))
SIGNING_KEY = SigningKey(SECRET)
PASSWORD = "correct horse"
ETHERS = load("keystores")

# One round instead of a second of work: what is tested is not the cost of guessing.
KEYSTORE: dict[str, Any] = Account.encrypt(SECRET, PASSWORD, kdf="pbkdf2", iterations=1)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINKIT_KEYSTORE", raising=False)
    monkeypatch.delenv("CHAINKIT_PASSWORD_FILE", raising=False)


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    path = tmp_path / "node.json"
    path.write_text(json.dumps(KEYSTORE))
    return path


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password.txt"
    path.write_text(PASSWORD + "\n")
    return path


def run(*arguments: object, typed: str | None = None, **options: Any) -> Result:
    """Run `chainkit key` before a terminal where something is typed."""
    with mock.patch("chainkit.terminal.keystore._has_terminal", return_value=typed is not None):
        words = [str(argument) for argument in arguments]
        return CliRunner(**options).invoke(key, words, input=typed)


def refusal_of(result: Result) -> str:
    assert isinstance(result.exception, ConfigurationError), result.exception
    return str(result.exception)


def everything_said(result: Result) -> str:
    """The output, and the text that a log of the exception would print."""
    trace = traceback.format_exception(result.exception) if result.exception else []
    return result.output + "".join(trace)


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in KEYSTORE.items() if name != field}


def with_crypto(**changes: Any) -> dict[str, Any]:
    return KEYSTORE | {"crypto": KEYSTORE["crypto"] | changes}


def with_derivation(**changes: Any) -> dict[str, Any]:
    return with_crypto(kdfparams=KEYSTORE["crypto"]["kdfparams"] | changes)


# ------------------------------------------------------------------ new, then show


@dataclass(frozen=True)
class Made:
    """One run of `key new`, whose key derivation is meant to be slow."""

    path: Path
    secret: bytes
    result: Result


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("key")
    path, password_path = folder / "node.json", folder / "password.txt"
    password_path.write_text(PASSWORD)
    result = run("new", "--keystore", path, typed=f"one\nother\n{PASSWORD}\n{PASSWORD}\n")
    assert result.exit_code == 0, result.output
    return Made(path, load_secret(path, password_path), result)


def test_make_key__then_load_it__is_the_key_that_was_shown(made: Made) -> None:
    public_key = SigningKey(made.secret).public_key

    assert made.result.output.endswith(
        f"\npublic key  0x{public_key.hex()}\naddress     {address_of(public_key)}\n"
    )


def test_make_key__file__is_a_slow_keystore_readable_by_its_owner_alone(made: Made) -> None:
    content = json.loads(made.path.read_text())

    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert (content["version"], content["crypto"]["kdf"]) == (3, "scrypt")
    assert content["crypto"]["kdfparams"]["n"] >= 2**17


def test_make_key__secret_and_password__are_never_said(made: Made) -> None:
    for text in (everything_said(made.result), made.path.read_text()):
        assert made.secret.hex() not in text.lower()
        assert PASSWORD not in text


def test_make_key__passwords_typed_differently__asks_again(made: Made) -> None:
    assert made.result.output.count("do not match") == 1


def test_make_key__file_exists__is_refused_and_untouched(keystore: Path, password: Path) -> None:
    before = keystore.read_bytes()

    result = run("new", "--keystore", keystore, "--password-file", password)

    assert refusal_of(result) == (f"keystore {keystore} already exists")
    assert keystore.read_bytes() == before


# ------------------------------------------------------------------ show


def test_show_key__password_from_a_file__prints_the_public_half(
    keystore: Path, password: Path
) -> None:
    result = run("show", "--keystore", keystore, "--password-file", password)

    assert result.exit_code == 0
    assert result.output == (
        f"public key  0x{SIGNING_KEY.public_key.hex()}\n"
        f"address     {address_of(SIGNING_KEY.public_key)}\n"
    )


def test_show_key__password_typed__prints_json_alone_for_a_script(
    keystore: Path,
) -> None:
    result = run("show", "--keystore", keystore, "--json", typed=PASSWORD + "\n", mix_stderr=False)

    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "address": address_of(SIGNING_KEY.public_key),
        "public_key": "0x" + SIGNING_KEY.public_key.hex(),
    }
    assert PASSWORD not in result.stdout + result.stderr


def test_show_key__options_from_the_environment__are_taken(
    keystore: Path, password: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINKIT_KEYSTORE", str(keystore))
    monkeypatch.setenv("CHAINKIT_PASSWORD_FILE", str(password))

    assert address_of(SIGNING_KEY.public_key) in run("show").output


def test_show_key__no_terminal_and_no_password_file__is_one_sentence(keystore: Path) -> None:
    program = Path(sys.executable).with_name("chainkit")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CHAINKIT_")}

    # A session of its own has no terminal, as a service has none.
    result = subprocess.run(
        [program, "key", "show", "--keystore", keystore],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        env=environment,
    )

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: password: expected a terminal or --password-file, got neither\n"
    )


def test_show_key__wrong_password__is_one_sentence_without_it(keystore: Path) -> None:
    result = run("show", "--keystore", keystore, typed="battery staple\n")

    assert refusal_of(result) == (
        f"keystore {keystore}: expected its password, got another password"
    )
    assert "battery staple" not in everything_said(result)
    assert "Traceback" not in result.output


def test_run__wrong_password__prints_the_sentence_and_exits_2(
    keystore: Path,
    password: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    password.write_text("battery staple")
    arguments = ["--keystore", str(keystore), "--password-file", str(password)]
    monkeypatch.setattr("sys.argv", ["chainkit", "key", "show", *arguments])

    with pytest.raises(SystemExit) as exit_:
        main()

    said = capsys.readouterr()
    assert exit_.value.code == 2
    assert said.out == ""
    assert " ".join(said.err.split()) == (
        f"error: keystore {keystore}: expected its password, got another password"
    )


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


def test_new__folder_that_is_missing__is_named(tmp_path: Path, password: Path) -> None:
    keystore = tmp_path / "missing" / "node.json"
    arguments = ["new", "--keystore", str(keystore), "--password-file", str(password)]

    error = CliRunner().invoke(key, arguments).exception

    assert f"expected a folder that exists, got no folder {keystore.parent}" in str(error)


@pytest.mark.parametrize("missing", ["keystore", "password file"])
def test_load_secret__file_missing__names_it(
    keystore: Path, password: Path, tmp_path: Path, missing: str
) -> None:
    nowhere = tmp_path / "nowhere"
    paths = (nowhere, password) if missing == "keystore" else (keystore, nowhere)

    with pytest.raises(ConfigurationError) as caught:
        load_secret(*paths)

    assert str(caught.value) == (f"{missing} {nowhere} does not exist")


def test_load_secret__password_file_in_another_encoding__is_refused_without_showing_it(
    keystore: Path, password: Path
) -> None:
    password.write_bytes("hush-ä".encode("latin-1"))

    with pytest.raises(ConfigurationError, match=r"^password file ") as caught:
        load_secret(keystore, password)

    assert "hush" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_load_secret__password_file_with_any_line_ending__gives_the_secret(
    keystore: Path, password: Path, ending: str
) -> None:
    password.write_bytes((PASSWORD + ending).encode())

    assert load_secret(keystore, password) == SECRET


def test_load_signing_key__keystore_of_a_secret__signs_as_that_key(
    keystore: Path, password: Path
) -> None:
    assert load_signing_key(keystore, password).public_key == SIGNING_KEY.public_key


def test_make_key__empty_password_file__is_refused_and_writes_nothing(tmp_path: Path) -> None:
    password, keystore = tmp_path / "password", tmp_path / "key.json"
    password.write_text("\n")

    with pytest.raises(ConfigurationError, match="expected a password, got an empty file"):
        CliRunner().invoke(
            key,
            ["new", "--keystore", str(keystore), "--password-file", str(password)],
            catch_exceptions=False,
        )

    assert not keystore.exists()
