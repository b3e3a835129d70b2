"""The administrators' commands refuse wrong options before they open a chain."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from eth_utils.address import to_checksum_address

from chainkit.cli.contracts.group import contracts as contracts_group
from support.audit.bundles import record_content
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
    commands = contracts_group.list_commands(click.Context(contracts_group))

    assert set(commands) - {"verify", "upgrade"} == set(COMPLETE)


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
        (["grant-admin", NAME, ACCOUNT[:-1] + "9"], "its own checksum (EIP-55) matches, got 0x"),
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


TERMS = {
    "--reason": ["--reason", "a trial"],
    "--evidence": ["--evidence", "report.bin"],
    "--expires-in": ["--expires-in", "7"],
    "--nonce": ["--nonce", "0"],
}


@pytest.mark.parametrize(
    "end", [[], ["--broadcast", "--keystore", "key.json"]], ids=["dry", "sent"]
)
@pytest.mark.parametrize("term", TERMS)
def test_run__terms_of_a_proposal_where_none_is_written__are_refused(
    record: Path, term: str, end: list[str]
) -> None:
    outcome = contracts(record, "pause", NAME, *TERMS[term], *end)

    assert outcome.code == 2
    assert f"Error: {term}: only with --propose FILE\n" in outcome.err


@pytest.mark.parametrize(
    "command",
    [
        ["registry", "disable", "100"],
        ["registry", "plan", "nodes.yaml"],
        ["contracts", "upgrade", NAME],
        ["council", "triage", "reports"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_run__two_terms_where_no_proposal_is_written__are_both_named_by_every_command(
    record: Path, command: list[str]
) -> None:
    place = ("--rpc", "http://127.0.0.1:1", "--deployment", record)
    outcome = run(*command, *TERMS["--reason"], *TERMS["--nonce"], *place)

    assert outcome.code == 2
    assert "Error: --reason and --nonce: only with --propose FILE\n" in outcome.err


def test_run__terms_of_a_proposal_with_one__opens_the_chain(record: Path) -> None:
    terms = [word for words in TERMS.values() for word in words]

    outcome = contracts(record, "pause", NAME, "--propose", "new.json", *terms)

    assert "A test tried to use socket" in outcome.err


def test_run__mistyped_address__is_not_told_the_checksum_of_its_digits(record: Path) -> None:
    mistyped = ACCOUNT[:-1] + "9"

    outcome = contracts(record, "grant-admin", NAME, mistyped)

    assert mistyped in outcome.err
    assert to_checksum_address(mistyped) not in outcome.err


def test_run__dry__does_open_the_chain(record: Path) -> None:
    outcome = contracts(record, "pause", NAME)

    assert "A test tried to use socket" in outcome.err
