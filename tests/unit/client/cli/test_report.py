"""``client report``: what was kept is listed, and written as the council reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit_client.breach import Breach
from chainkit_client.cli.home import Home
from chainkit_client.home import Settings
from chainkit_client.storage.evidence import keep_breaches
from chainkit_client.storage.store import Store
from support.client.served import NODE, NOW_NS
from support.command_line import run

LIE = Breach(
    100, Misbehavior.DUPLICATE_SEQUENCE_ID, "two of 3", (NODE.signed(3, 60), NODE.signed(3, 61))
)
NAMELESS = Breach(200, None, "its topic head names 4, which nobody serves", ())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "password").write_text("secret\n")
    found = Home(tmp_path / "home", tmp_path / "password")
    found.make()
    found.write_settings(Settings("http://h:1", "http://h:2", "/deployment.json", "0x" + "1" * 40))
    Store.open(found.database_path, "secret", cost=2).close()
    return found


def report(home: Home, *options: object) -> tuple[int, str]:
    done = run(
        *("client", "report", "--home", home.home_path, "--password-file", home.password_path),
        *options,
    )
    return done.code, done.out + done.err


def keep(home: Home) -> None:
    store = Store.open(home.database_path, "secret")
    with store.writing() as connection:
        keep_breaches(connection, [LIE, NAMELESS], NOW_NS)
    store.close()


def test_report__nothing_was_seen__says_so_and_exits_with_0(home: Home) -> None:
    assert report(home) == (0, "no node broke a rule, as far as this client saw\n")


def test_report__broken_rules__are_listed_and_exit_with_1(home: Home) -> None:
    keep(home)

    code, told = report(home)
    listed = json.loads(report(home, "--json")[1])

    assert code == 1
    assert "DUPLICATE_SEQUENCE_ID" in told
    assert {(each["node_id"], each["type"], each["can_be_reported"]) for each in listed} == {
        (100, "DUPLICATE_SEQUENCE_ID", True),
        (200, None, False),
    }


def test_report__evidence__is_a_signed_report_of_each_that_can_be_reported(
    home: Home, tmp_path: Path
) -> None:
    keep(home)

    report(home, "--evidence", tmp_path / "reports")

    [path] = (tmp_path / "reports").iterdir()
    signed = message_api_pb2.MisbehaviorReport.FromString(path.read_bytes())
    unsigned = message_api_pb2.UnsignedMisbehaviorReport.FromString(
        signed.unsigned_misbehavior_report
    )
    assert unsigned.misbehaving_node_id == 100
    assert len(unsigned.safety.envelopes) == 2


def test_report__wrong_password__reveals_nothing(home: Home) -> None:
    keep(home)
    assert home.password_path is not None
    home.password_path.write_text("another\n")

    code, told = report(home)

    assert code == 2
    assert "expected the one of this database, got another" in told
    assert "DUPLICATE" not in told
