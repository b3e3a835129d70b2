"""A home folder: what is in it is private, checked, and moved there whole."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit_client.cli.home import Home
from chainkit_client.home import Settings
from support.command_line import run

SETTINGS = Settings(
    "http://127.0.0.1:5050", "http://rpc/a-key", "/deployment.json", "0x" + "1" * 40
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "password").write_text("secret\n")
    found = Home(tmp_path / "home", tmp_path / "password")
    found.make()
    return found


def test_write_settings__read_again__are_the_same_and_their_owners_alone(home: Home) -> None:
    home.write_settings(SETTINGS)

    assert home.read_settings() == SETTINGS
    assert stat.S_IMODE(home.settings_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.home_path.stat().st_mode) == 0o700
    assert [each.name for each in home.home_path.iterdir()] == ["settings.json"]


def test_settings__repr__shows_no_key() -> None:
    assert "a-key" not in repr(SETTINGS)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]", "an object with address, deployment, gateway, rpc, got list"),
        ('{"gateway": "http://h:1"}', "an object with address, deployment, gateway, rpc"),
        ("{", "expected JSON"),
    ],
)
def test_read_settings__another_form__says_what_was_expected(
    home: Home, content: str, told: str
) -> None:
    home.settings_path.write_text(content)

    with pytest.raises(ConfigurationError, match="settings") as error:
        home.read_settings()
    assert told in str(error.value)


def test_read_settings__gateway_is_no_url__is_refused(home: Home) -> None:
    home.write_settings(SETTINGS)
    content = json.loads(home.settings_path.read_text()) | {"gateway": "localhost"}
    home.settings_path.write_text(json.dumps(content))

    with pytest.raises(ConfigurationError, match="gateway"):
        home.read_settings()


def test_whoami__no_home__says_how_to_make_one(tmp_path: Path) -> None:
    done = run("client", "whoami", "--home", tmp_path / "none")

    assert (done.code, done.out) == (2, "")
    assert "`chainkit client init` makes one" in " ".join(done.err.split())


def test_send__no_database__asks_for_no_password(home: Home) -> None:
    home.write_settings(SETTINGS)

    done = run("client", "send", "3fa2", "hello", "--home", home.home_path)

    assert done.code == 2
    assert "a client's database: `chainkit client init` makes one, got none" in done.err


def test_init__without_urls__names_all_that_is_missing(tmp_path: Path) -> None:
    done = run("client", "init", "--home", tmp_path / "home")

    assert done.code == 2
    assert "missing --gateway, --rpc, --deployment" in done.err
    assert not (tmp_path / "home").exists()


def test_init__password_file_is_missing__makes_nothing(tmp_path: Path) -> None:
    options = ["--gateway", "http://h:1", "--rpc", "http://h:2", "--deployment", "d.json"]

    done = run(
        "client", "init", "--home", tmp_path / "home", *options, "--password-file", tmp_path / "no"
    )

    assert done.code == 2
    assert "does not exist" in done.err
    assert not (tmp_path / "home").exists()
