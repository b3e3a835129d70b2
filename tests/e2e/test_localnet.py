import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localnet.deployment import PROJECT
from support.terminal import run_at_terminal

GUIDE = PROJECT / "docs" / "council.md"
CLIENT_GUIDE = PROJECT / "docs" / "client.md"
LAST_LINE = "docs/council.md has a rehearsal"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings that `make localnet` says to export, while it runs."""
    folder = tmp_path_factory.mktemp("localnet") / "localnet"
    command = [sys.executable, "-m", "localnet", "--folder", str(folder)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if LAST_LINE in line:
                break
        yield dict(re.findall(r"^export (\w+)=(.+)$", "".join(lines), re.MULTILINE))
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0, lines


def test_localnet__second_in_the_same_folder__says_no_and_leaves_the_first_alone(
    settings: dict[str, str],
) -> None:
    record = Path(settings["CHAINKIT_DEPLOYMENT"])
    before = record.read_bytes()
    command = [sys.executable, "-m", "localnet", "--folder", str(record.parent)]

    # One that takes the folder would run until it is stopped.
    second = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=60
    )

    assert second.returncode == 2
    assert "belongs to a localnet that runs; choose another with --folder" in second.stderr
    assert record.read_bytes() == before


def client_commands() -> list[str]:
    """The commands that the client's guide has for a localnet, but for the one that goes on."""
    section = CLIENT_GUIDE.read_text().split("\n## Commands\n")[1]
    blocks = section.split("```")[1:4:2]
    commands = [each for block in blocks for each in block.strip().splitlines()]
    return [each for each in commands if "--follow" not in each]


def test_client_commands__as_the_guide_has_them__bring_the_past_to_a_phone(
    settings: dict[str, str], tmp_path: Path
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | settings | {"PATH": path, "HOME": str(tmp_path)}
    names, pin, last = dict[str, str](), "", ""
    for command in client_commands():
        for name, value in names.items():
            command = command.replace(name, value)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            input=f"{pin}\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        last = done.stdout
        facts = dict(re.findall(r"^(\S+) +(\S+)", last, re.MULTILINE))
        if "init --home bob" in command:
            names["ADDRESS_OF_BOB"] = facts["address"]
        elif "group new" in command:
            names["3fa2"] = facts["group"]
        elif "init --home phone" in command:
            [names["5d10"]] = re.findall(r"history approve (\w+)", last)
            pin = facts["pin"]
    assert "hello, Bob  (from device " in last
    assert "the network has its envelope)" in last


def rehearsal() -> list[str]:
    """The commands of the guide's rehearsal, as its reader copies them."""
    section = GUIDE.read_text().split("## Rehearse it first")[1]
    return section.split("```")[1].strip().splitlines()


def test_rehearsal__as_the_guide_has_it__hands_the_registry_over(
    settings: dict[str, str], tmp_path: Path
) -> None:
    settings.pop("PATH")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    secrets = [*Path(settings["KEYS"]).glob("*.keystore"), Path(settings["CHAINKIT_PASSWORD_FILE"])]
    assert {secret.stat().st_mode & 0o777 for secret in secrets} == {0o600}
    environment = {"HOME": str(tmp_path), "PATH": path, "CHAINKIT_COUNCIL": "council.json"}
    first, *commands = rehearsal()
    assert first == "export CHAINKIT_COUNCIL=council.json"
    for command in commands:
        typed = ""
        if command.startswith("chainkit council sign"):
            proposal = json.loads((tmp_path / command.split()[3]).read_text())
            typed = proposal["hashes"]["safe_tx"][2:18] + "\n"
        # As the guide's reader: at a terminal.
        done = run_at_terminal(["bash", "-c", command], typed, tmp_path, environment | settings)
        # The log's code is 1: it finds what the deployer did, who is not the Safe.
        expected = 1 if command == "chainkit council log" else 0
        assert done.returncode == expected, f"{command}\n{done.stdout}{done.stderr}"
        last = done.stdout
    assert "NodeRegistry.acceptOwnership" in last
