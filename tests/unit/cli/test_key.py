import json
import os
import stat
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from chainkit.cli.key import key
from chainkit.cli.main import main
from chainkit.errors import ConfigurationError
from chainkit.signatures import SigningKey, address_of
from chainkit.terminal.keystore import load_secret, load_signing_key
from support.key_command import PASSWORD, SECRET, SIGNING_KEY, everything_said, refusal_of, run

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
