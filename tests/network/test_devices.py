"""A person lost a device, and revokes it: as it is typed, and as today's client sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.terminal.keystore import write_keystore
from localnet.commands import Settings
from localnet.network import Network
from support.network.node_sdk import NodeSdkClient
from support.network.people import new_person
from support.network.typing_people import TypingPerson as Person
from support.network.typing_people import people_at

SECONDS = 60
KILLED = """
import os, signal
from chainkit.cli.main import main
import {module} as module
module.{name} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture
def people(
    network: Network, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Person]:
    return people_at(settings, network.gateway_url, tmp_path, monkeypatch)


def kill_at(module: str, name: str, words: list[str]) -> None:
    """Run a command in a process that is killed where it calls a function."""
    script = KILLED.format(module=module, name=name)
    killed = subprocess.run([sys.executable, "-c", script, *words], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL


def keys_in(person: Person, group: str, expected: int = 0) -> set[str]:
    """Return the members of a group; 1 is the exit code where one is not of its inbox."""
    shown = json.loads(person.say("group", "show", group, "--json", expected=expected))
    return {each["installation"] for each in shown["members"]}


def test_device__lost_or_stolen__is_revoked_and_leaves_groups_with_the_next_commit(
    people: list[Person], tmp_path: Path
) -> None:
    ann, laptop = people
    ann_key = ann.do(*ann.init)["installation"]
    made = laptop.do(*laptop.init)
    phone = replace(laptop, home=tmp_path / "phone")
    lost = phone.do(*phone.init, "--wallet", laptop.home / "wallet.keystore")["installation"]
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("a long walk in the rain\n")
    account = tmp_path / "backup.account", "--passphrase-file", passphrase
    backup = laptop.do("history", "account", "create", *account)["installation"]
    joined, pending = [ann.do("group", "new", made["address"])["group"] for _ in range(2)]
    laptop.say("accept", joined)
    phone.say("accept", joined)

    # The list, and what is refused.
    own = made["installation"]
    devices = laptop.do("device", "list")
    assert [each["device"] for each in devices] == [own, lost, backup]
    assert [each["is_this"] for each in devices] == [True, False, False]
    assert [each["is_backup"] for each in devices] == [False, False, True]
    assert "another device, or --this-device" in laptop.fail("device", "revoke", own, "--yes")
    assert "name its keystore by --wallet" in phone.fail("device", "revoke", own, "--yes")
    other = tmp_path / "other.keystore"
    write_keystore(other, b"\1" * 32, laptop.password)
    words = ("device", "revoke", lost[:8])
    refused = laptop.fail(*words, "--yes", "--wallet", other)
    assert f"expected {made['address']}, the inbox's recovery identifier" in refused
    laptop.say(*words, expected=1, typed="n\n")

    # Killed behind the publish: the same command goes on.
    kill_at("chainkit_client.network.revoking", "_is_revoked", laptop.words(*words, "--yes"))
    wait_until(lambda: phone.do("device", "list", "--all")[1]["revoked_ns"] is not None)
    assert keys_in(ann, joined, expected=1) == {ann_key, own, lost, backup}
    assert laptop.do(*words, "--yes") == {"revoked": [lost], "groups": 1}
    assert "one that was revoked" in laptop.fail(*words, "--yes")
    assert [each["device"] for each in laptop.do("device", "list")] == [own, backup]
    [_, shown, _] = phone.do("device", "list", "--all")
    assert (shown["device"], shown["revoked_ns"] > shown["added_ns"]) == (lost, True)

    # The laptop was in one of the groups. In the other one, Ann's next commit does it.
    assert keys_in(ann, joined) == {ann_key, own, backup}
    assert keys_in(ann, pending, expected=1) == {ann_key, own, lost, backup}
    ann.say("group", "remove", pending, backup)
    assert keys_in(ann, pending) == {ann_key, own}
    [group] = [each for each in phone.do("group", "list") if each["id"] == joined]
    assert group["is_member"] is False


def test_device__of_todays_client__is_revoked_by_our_command(
    people: list[Person], network: Network, tmp_path: Path
) -> None:
    ours, _ = people
    account = new_person()
    wallet = tmp_path / "wallet.keystore"
    write_keystore(wallet, bytes(account.key), ours.password)
    with ExitStack() as stack:
        kept, lost = NodeSdkClient(account), NodeSdkClient(account)
        for client, name in ((kept, "kept"), (lost, "lost")):
            stack.callback(client.close)
            client.connect(network.gateway_url, tmp_path / name)
        # Today's inboxes have nonce 1.
        own = ours.do(*ours.init, "--wallet", wallet, "--nonce", "1")["installation"]
        both = {kept.installation(), lost.installation()}
        wait_until(lambda: kept.installations() == {own, *both})
        assert {each["device"] for each in ours.do("device", "list")} == {own, *both}

        # The command ends once a node serves the revocation, and the network has one node.
        revoke = ("device", "revoke", lost.installation(), "--wallet", wallet, "--yes")
        assert ours.do(*revoke) == {"revoked": [lost.installation()], "groups": 0}

        assert kept.installations() == lost.installations() == {own, kept.installation()}
