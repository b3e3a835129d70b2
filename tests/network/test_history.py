"""History for a second device, as its person types it on a real network."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit_client.groups.plaintext import message_id
from chainkit_client.history.packing import new_key, pack, recipient_of, unpack
from chainkit_client.storage.own import read_installation
from chainkit_client.storage.store import Store
from localnet.commands import Settings
from localnet.network import Network
from support.client.history_devices import signed_lines
from support.network.real_nodes import until
from support.network.typing_people import TypingPerson as Person
from support.network.typing_people import people_at

from .conftest import PASSWORD


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

    # The envelopes of nodes prove each message; the group's first commit was never published.
    covered = checked(phone)
    doubts = {name: covered[name] for name in ("invented", "disputed", "omitted", "unchecked")}
    assert set(doubts.values()) == {0}
    assert covered["proven"] + covered["unpublished"] == saved["messages"]
    assert covered["proven"] >= len(read)
    assert f"(from device {laptop[:20]}, the network has its envelope)" in phone.say("read", group)

    # The laptop lies: it claims words that no node has, and other words for an envelope.
    lying, lying_key = tmp_path / "lying.age", tmp_path / "lying.key"
    write_lies(ben, file, key, lying, lying_key)
    assert phone.do("history", "load", lying, "--key", lying_key)["new"] == 2
    covered = checked(phone, expected=1)
    assert (covered["invented"], covered["disputed"], covered["omitted"]) == (1, 2, 0)
    standings = {each["text"]: each["standing"] for each in transcript(phone, group)}
    assert standings == {
        "before there was a phone": "proven",
        "and my answer": "disputed",
        "never said": "invented",
        "another answer": "disputed",
    }


def checked(person: Person, expected: int = 0) -> Any:
    """Check the one group until all nodes answer in time, which a busy machine's may not."""
    found: list[Any] = []

    def is_whole() -> bool:
        found[:] = json.loads(person.say("history", "check", "--json", expected=expected))
        return not found[0]["unchecked"]

    until(is_whole)
    [covered] = found
    return covered


def write_lies(person: Person, file: Path, key: Path, lying: Path, lying_key: Path) -> None:
    """Write a file that a device signs, with two messages that nobody sent."""
    with file.open("rb") as opened:
        lines: list[bytes] = []
        unpack(opened, key.read_text().strip(), lines.append)
    header, *rest, _ = map(json.loads, lines)
    answer = next(each for each in rest if each.get("originator_ns") == newest(rest))
    lies = [
        told(answer, b"another answer"),
        told(answer | {"sequence_id": 10**6, "originator_ns": time.time_ns()}, b"never said"),
    ]
    header["messages"] += 2
    told_lines = [json.dumps(each).encode() for each in (header, *rest, *lies)]
    store = Store.open(person.home / "client.db", PASSWORD)
    with store.reading() as connection:
        secret = read_installation(connection, store.seal).secret
    store.close()
    lying_key.write_text(new_key())
    with lying.open("wb") as written:
        pack(signed_lines(secret, told_lines), written, recipient_of(lying_key.read_text()))


def newest(lines: list[dict[str, Any]]) -> int:
    return max(each.get("originator_ns") or 0 for each in lines)


def told(line: dict[str, Any], words: bytes) -> dict[str, Any]:
    """A message of other words, under the id that they have."""
    identity = message_id(words, bytes.fromhex(line["group"][2:]), line["sent_at_ns"])
    return line | {"content": base64.b64encode(words).decode(), "id": f"0x{identity.hex()}"}
