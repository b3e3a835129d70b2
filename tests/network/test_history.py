"""History for a second device, as its person types it on a real network."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localnet.commands import Settings
from localnet.network import Network
from support.network.typing_people import TypingPerson as Person
from support.network.typing_people import people_at


@pytest.fixture
def people(
    settings: Settings, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Person]:
    return people_at(settings, network.gateway_url, tmp_path, monkeypatch)


def transcript(person: Person, group: str) -> list[dict[str, Any]]:
    lines = person.say("read", group, "--json").splitlines()
    return [each for each in map(json.loads, lines) if each["kind"] == "text"]


@pytest.mark.conforms("H7", "H29")
def test_history__device_joins_after_the_messages__reads_them_from_the_persons_other_device(
    people: list[Person], tmp_path: Path
) -> None:
    ann, ben = people
    ann.do(*ann.init)
    ben_address = ben.do(*ben.init)["address"]
    group = ann.do("group", "new", ben_address)["group"]
    ann.do("send", group, "before there was a phone")
    ben.say("accept", group)
    ben.do("send", group, "and my answer")
    phone = replace(ben, home=tmp_path / "phone")
    phone.do(*phone.init, "--wallet", ben.home / "wallet.keystore")
    assert phone.do("group", "list") == []

    file, key = tmp_path / "past.age", tmp_path / "past.key"
    saved = ben.do("history", "save", file, "--key", key)
    assert saved["groups"] == 1
    # A key that is there is not written over, and its file stays as it is.
    assert "already exists" in ben.fail("history", "save", file, "--key", key)
    assert key.stat().st_mode & 0o777 == 0o600

    # A file that was cut on its way, and a file of somebody else, are refused whole.
    cut = tmp_path / "cut.age"
    cut.write_bytes(file.read_bytes()[:-1])
    assert "a whole and unaltered file" in phone.fail("history", "load", cut, "--key", key)
    others, others_key = tmp_path / "ann.age", tmp_path / "ann.key"
    ann.do("history", "save", others, "--key", others_key)
    assert "a file of inbox" in phone.fail("history", "load", others, "--key", others_key)
    assert phone.do("group", "list") == []

    loaded = phone.do("history", "load", file, "--key", key)
    again = phone.do("history", "load", file, "--key", key)

    laptop = ben.do("whoami")["installation"]
    assert loaded["device"] == laptop
    assert (loaded["new"], again["new"], again["known"]) == (saved["messages"], 0, loaded["new"])
    [listed] = phone.do("group", "list")
    assert (listed["id"], listed["is_imported"]) == (group, True)
    read, own = transcript(phone, group[:8]), transcript(ben, group)
    assert [each["text"] for each in read] == ["before there was a phone", "and my answer"]
    assert [each.pop("from_device") for each in read] == [laptop] * 2
    # All but the mark is as the other device has it; senders are compared with their inboxes.
    assert read == [{name: each[name] for name in read[0]} for each in own]
    assert f"(from device {laptop[:20]}, not checked)" in phone.say("read", group)
