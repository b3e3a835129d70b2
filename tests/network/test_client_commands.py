"""The client's commands on a real network, as two people type them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from chainkit.terminal.keystore import write_keystore
from chainkit_client.storage.schema import groups
from chainkit_client.storage.store import Store
from localnet.commands import CHAINKIT, Settings
from localnet.network import Network
from support.network.typing_people import TypingPerson as Person
from support.network.typing_people import check_proofs, people_at

from .conftest import PASSWORD

DEAD = "http://127.0.0.1:9"


@pytest.fixture
def people(
    settings: Settings, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Person]:
    return people_at(settings, network.gateway_url, tmp_path, monkeypatch)


def check_second_device(ben: Person, ben_inbox: str, folder: Path) -> Person:
    """A wallet's second client is in the same inbox, and no client changes its wallet."""
    phone = replace(ben, home=folder / "phone")
    wallet = ben.home / "wallet.keystore"
    registered = phone.do(*phone.init, "--wallet", wallet)
    assert registered["inbox_id"] == ben_inbox
    assert registered["installation"] != ben.do("whoami")["installation"]
    other = folder / "other.keystore"
    write_keystore(other, b"\1" * 32, PASSWORD)
    assert "expected the wallet of 0x" in phone.fail("init", "--wallet", other)
    return phone


def check_fork_is_told(ann: Person, group: str) -> None:
    """A script sees by the exit code that another member has another history."""
    store = Store.open(ann.home / "client.db", PASSWORD)
    with store.writing() as connection:
        connection.execute(update(groups).values(forked_at_epoch=1))
    store.close()
    assert "FORKED at epoch 1" in ann.say("group", "show", group, expected=1)
    assert json.loads(ann.say("group", "show", group, "--json", expected=1))["forked_at_epoch"] == 1


def days_kept(person: Person, group: str) -> float:
    """For how many days a node keeps the last message that a person reads."""
    last = json.loads(person.say("read", group, "--json").splitlines()[-1])
    return (last["expires_at"] - last["time_ns"] // 10**9) / 86_400


def check_retention(ann: Person, ben: Person, group: str) -> None:
    """The wish for texts is set and taken back by a command, and all see what becomes of it."""
    assert ann.do("retention") == {"retention_days": None}
    assert ann.do("retention", "--days", "3") == {"retention_days": 3}
    ann.do("send", group, "for three days")
    assert days_kept(ann, group) == days_kept(ben, group) == 3
    # A later `init` leaves it as it is.
    ann.do("init", "--gateway", ann.gateway_url)
    assert ann.say("retention").split() == ["retention", "3", "days"]
    assert ann.do("retention", "--default") == {"retention_days": None}
    assert "the gateway decides" in ann.say("retention")
    ann.do("send", group, "for as long as the gateway wants")
    assert days_kept(ann, group) == days_kept(ben, group) == 30
    assert "exclude each other" in ann.fail("retention", "--days", "3", "--default")
    assert "is not in the range 1<=x<=365" in ann.fail("retention", "--days", "366")


def test_client_commands__two_people_on_a_network__register_meet_talk_and_see_what_fails(
    people: list[Person], settings: Settings, tmp_path: Path
) -> None:
    ann, ben = people
    # Ann's registration is killed once her keys are made, and goes on with the same command.
    with subprocess.Popen([CHAINKIT, *ann.words(*ann.init)]) as interrupted:
        while not (ann.home / "client.db").exists():
            assert interrupted.poll() is None
        interrupted.kill()
    wallet = (ann.home / "wallet.keystore").read_bytes()
    registered = [each.do(*each.init) for each in people]

    assert (ann.home / "wallet.keystore").read_bytes() == wallet
    assert registered == [each.do("whoami") for each in people]
    ben_address = registered[1]["address"]
    phone = check_second_device(ben, registered[1]["inbox_id"], tmp_path)

    # A typo makes nothing.
    typo = ben_address[:-1]
    assert f"or an address (0x and 40 hex digits), got '{typo}'" in ann.fail("group", "new", typo)
    nobody = "0x" + "12" * 20
    assert f"expected one that is in an inbox, got {nobody}" in ann.fail("group", "new", nobody)
    assert ann.do("group", "list") == []

    short = ann.do("group", "new", ben_address)["group"][:6]
    assert ann.do("send", short, "hello, Ben")["delivery"] == "published"
    assert "an invitation" in ben.fail("send", short, "too early")
    ben.say("accept", short)
    phone.say("accept", short)
    phone.do("send", short, "hello, Ann")
    lines = [json.loads(line) for line in ann.say("read", short, "--json").splitlines()]
    texts = [each["text"] for each in lines if each["kind"] == "text"]
    assert texts == ["hello, Ben", "hello, Ann"]
    assert "ok     gateway" in ann.say("doctor")
    assert ann.do("report") == []

    check_retention(ann, ben, short)

    # Ann's gateway dies: she is told, and what she wrote is sent when there is one again.
    settings_path = ann.home / "settings.json"
    settings_path.write_text(settings_path.read_text().replace(ann.gateway_url, DEAD))
    told = ann.fail("send", short, "still there?")
    assert f"gateway {DEAD}: expected a connection, got none" in told
    assert "what waits is kept" in told
    assert "WRONG  gateway" in ann.say("doctor", expected=1)
    assert ann.do("intents", short)[-1]["state"] != "processed"
    ann.do("init", "--gateway", ann.gateway_url)
    ann.say("send", short, "here I am")

    members = ann.do("group", "show", short)["members"]
    assert {each["inbox"] for each in members} == {each["inbox_id"] for each in registered}
    assert all(each["is_of_inbox"] for each in members)
    last = ben.say("read", short).splitlines()[-2:]
    assert [line.split("  ")[-1] for line in last] == ["still there?", "here I am"]
    assert "has 1 inbox in epoch" in ann.say("group", "remove", short, ben_address)
    assert ben.do("group", "list")[0]["is_member"] is False
    lines = [json.loads(line) for line in ann.say("read", short, "--json").splitlines()]
    check_proofs(ann, lines, settings, tmp_path)
    check_fork_is_told(ann, short)
