"""The units of systemd: they are installed, verified, hardened, and name what the services read."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from chainkit_node.settings import StrangerLimits
from support.operations import OPERATIONS, parse

SYSTEMD = OPERATIONS / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
TIMERS = sorted(SYSTEMD.glob("*.timer"))
HOST_UNITS = Path("/lib/systemd/system")
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze"
)


def settings(unit: Path) -> dict[str, list[str]]:
    """Return what a unit sets, by its keys, in order."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        key, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def command(unit: Path) -> click.Command:
    [line] = settings(unit)["ExecStart"]
    program, *words = shlex.split(line)
    assert program == "/opt/chainkit/bin/chainkit"
    return parse(words)


def test_units__of_services__are_four_and_what_a_timer_starts() -> None:
    assert [each.stem for each in UNITS] == [
        "chainkit-backups",
        "chainkit-gateway",
        "chainkit-indexer",
        "chainkit-node",
        "chainkit-prune",
    ]
    assert [each.stem for each in TIMERS] == ["chainkit-prune"]


@needs_systemd
@pytest.mark.parametrize("unit", [*UNITS, *TIMERS], ids=lambda path: path.name)
def test_unit__installed__is_verified(unit: Path, tmp_path: Path) -> None:
    # The root has the units of this machine, the folders of the guide, and a program in its place.
    shutil.copytree(HOST_UNITS, tmp_path / "lib/systemd/system", symlinks=True)
    program = tmp_path / "opt/chainkit/bin/chainkit"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/true", program)
    installed = tmp_path / "etc/systemd/system"
    installed.mkdir(parents=True)
    for each in (*UNITS, *TIMERS):
        shutil.copy(each, installed)

    verified = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", f"--root={tmp_path}", unit.name],
        capture_output=True,
        text=True,
        check=False,
    )

    # A key that systemd does not know is a line, and no error of the program.
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_unit__exposure__is_below_3(unit: Path) -> None:
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )

    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_unit__environment__is_what_its_command_reads(unit: Path) -> None:
    options = [each for each in command(unit).params if isinstance(each, click.Option)]
    found = settings(unit)
    environment = dict(each.split("=", 1) for each in found["Environment"])
    credentials = {each.split(":")[0] for each in found.get("LoadCredential", [])}

    assert environment.keys() <= {each.envvar for each in options}
    given = " ".join([*environment.values(), *found["ExecStart"]])
    assert set(re.findall(r"%d/(\w+)", given)) == credentials
    # The unit sets all that is required, but for the endpoints, whose URLs are secrets.
    required = {each.envvar for each in options if each.required}
    assert required - environment.keys() == ({"CHAINKIT_RPC"} & required)
    # A service writes below the folder that systemd makes for the service.
    [state] = found["StateDirectory"]
    for value in environment.values():
        assert "%S" not in value or value.startswith(f"%S/{state}/")


def test_node__of_the_unit__takes_the_indexers_place_and_many_connections() -> None:
    node, indexer = (settings(SYSTEMD / f"chainkit-{each}.service") for each in ("node", "indexer"))

    assert node["Conflicts"] == ["chainkit-indexer.service"]
    for key in ("User", "StateDirectory", "LoadCredential", "EnvironmentFile"):
        assert node[key] == indexer[key]
    assert "CHAINKIT_SEQUENCE_RECORD=%S/chainkit/sequence-record" in node["Environment"]
    assert int(node["LimitNOFILE"][0]) > StrangerLimits().connections


@pytest.mark.conforms("T7")
def test_timer__of_pruning__starts_it_once_a_day_beside_the_node() -> None:
    [timer] = TIMERS
    node, unit = (settings(SYSTEMD / f"chainkit-{each}.service") for each in ("node", "prune"))

    assert settings(timer)["OnCalendar"] == ["*-*-* 03:00:00"]
    assert command(SYSTEMD / "chainkit-prune.service").name == "prune"
    assert unit["Type"] == ["oneshot"]
    assert "Restart" not in unit and "Conflicts" not in unit
    for key in ("User", "StateDirectory", "EnvironmentFile"):
        assert unit[key] == node[key]
    assert set(unit["Environment"]) <= set(node["Environment"])


def test_accounts__of_the_units__are_those_that_sysusers_makes() -> None:
    lines = (SYSTEMD / "chainkit.sysusers").read_text().splitlines()
    made = {line.split()[1] for line in lines if line.startswith("u ")}

    assert made == {settings(each)["User"][0] for each in UNITS}


def test_guide__of_the_units__installs_each_file_that_they_name() -> None:
    guide = (OPERATIONS / "README.md").read_text()

    for unit in UNITS:
        named = re.findall(r"/etc/chainkit/[\w./-]+", unit.read_text())
        assert named
        for path in named:
            assert path in guide, path
