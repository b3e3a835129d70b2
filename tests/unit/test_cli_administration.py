"""What the administrators' commands refuse before they open a chain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainkit.cli.administration import COMMANDS
from support.bundles import record_content
from support.command_line import Outcome, run

ACCOUNT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
NAME = "GroupMessages"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEYSTORE", "PASSWORD_FILE", "PRIVATE_KEY", "RPC", "DEPLOYMENT", "COUNCIL"):
        monkeypatch.delenv(f"CHAINKIT_{name}", raising=False)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "deployment.json"
    path.write_text(json.dumps(record_content()))
    return path


def contracts(record: Path, *arguments: object) -> Outcome:
    # Nothing listens there, and a unit test that opened a socket would fail otherwise.
    place = ("--rpc", "http://127.0.0.1:1", "--deployment", record)
    return run("contracts", *arguments, *place)


COMPLETE = {
    "pause": [NAME],
    "unpause": ["all"],
    "grant-admin": [NAME, ACCOUNT],
    "revoke-admin": [NAME, ACCOUNT],
    "set-bounds": [NAME, "--minimum", "1", "--maximum", "2"],
}


def test_list__commands_of_administrators__are_these() -> None:
    assert {command.name for command in COMMANDS} == set(COMPLETE)


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--broadcast"], "--broadcast needs --keystore FILE or --account ALIAS"),
        (
            ["--broadcast", "--keystore", "key.json", "--account", "alice"],
            "--broadcast needs one signer, got --keystore",
        ),
        (
            ["--broadcast", "--keystore", "key.json", "--propose", "new.json"],
            "--broadcast sends and --propose drafts: give one of them",
        ),
    ],
    ids=["no signer", "two signers", "two ends"],
)
def test_run__options_that_do_not_go_together__opens_no_chain(
    record: Path, name: str, options: list[str], words: str
) -> None:
    outcome = contracts(record, name, *COMPLETE[name], *options)

    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pause"], "missing CONTRACT"),
        (["pause", "groupmessages"], "is not one of"),
        (["pause", "OriginatorSequence"], "is not one of"),
        (["grant-admin", NAME], "missing ADDRESS"),
        (["grant-admin", NAME, ACCOUNT.lower()[:-1]], "expected 0x and 40 hex digits"),
        (["grant-admin", NAME, ACCOUNT[:-1] + "9"], "the checksum of 0x"),
        # The letter is Cyrillic.
        (["grant-admin", NAME, ACCOUNT.replace("c", "\u0441")], "\\u0441"),
        (["revoke-admin", NAME, "0x" + "0" * 40], "the zero address"),
        (["set-bounds", NAME], "missing --minimum, --maximum"),
        (["set-bounds", NAME, "--minimum", "-1", "--maximum", "1"], "-1"),
        (["set-bounds", NAME, "--minimum", "0", "--maximum", "1e3"], "not a valid integer"),
    ],
)
def test_run__argument_that_cannot_be__opens_no_chain(
    record: Path, arguments: list[str], words: str
) -> None:
    outcome = contracts(record, *arguments)

    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())
    assert outcome.out == ""


def test_run__dry__does_open_the_chain(record: Path) -> None:
    outcome = contracts(record, "pause", NAME)

    assert "A test tried to use socket" in outcome.err
