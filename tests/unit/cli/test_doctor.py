import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from chainkit.cli.doctor import doctor, inspect_machine
from chainkit.terminal.java import java_version
from chainkit.terminal.machine import Finding
from support.project import ROOT

ROLES = {"operator", "node", "application", "storage", "auditor", "council", "developer"}
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(doctor, list(arguments))


def findings_of(*arguments: str) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in json.loads(run("--json", *arguments).stdout)}


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def install(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)


def install_java(folder: Path, says: str) -> None:
    install(folder, "java", f"#!/bin/sh\necho '{says}' >&2\n")


def test_inspect__any_machine__tells_about_every_role_once() -> None:
    findings = inspect_machine()

    assert {finding.role for finding in findings} == ROLES | {"everyone"}
    names = [(finding.role, finding.name) for finding in findings]
    assert len(set(names)) == len(names)
    assert all(finding.detail for finding in findings)


def test_print_json__any_machine__is_a_list_of_findings_with_exact_fields() -> None:
    findings = json.loads(run("--json").stdout)

    assert len(findings) == len(inspect_machine())
    for finding in findings:
        assert {name: type(value) for name, value in finding.items()} == {
            "role": str,
            "name": str,
            "present": bool,
            "detail": str,
        }


@pytest.mark.parametrize("role", sorted(ROLES))
def test_choose_role__any__shows_it_and_what_everyone_needs(role: str) -> None:
    expected = [f.name for f in inspect_machine() if f.role in (role, "everyone")]

    assert list(findings_of("--role", role))[: len(expected)] == expected
    assert {finding["role"] for finding in findings_of("--role", role).values()} == {
        role,
        "everyone",
    }


@pytest.mark.parametrize(
    ("role", "extra"),
    [
        ("operator", "indexer"),
        ("auditor", "audit"),
        ("storage", "backups"),
    ],
)
def test_choose_role__with_an_extra__lists_each_package_of_it(role: str, extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = {
        re.split(r"[\[>=<]", each)[0].replace("-", "_")
        for each in project["optional-dependencies"][extra]
    }

    others = {"python", "java"}
    assert findings_of("--role", role).keys() - others == packages


def test_choose_role__unknown__exits_2() -> None:
    result = run("--role", "king")

    assert result.exit_code == 2
    assert "'king' is not one of" in result.output


def test_inspect__this_python__is_present_with_its_version() -> None:
    python = findings_of()["python"]

    assert python["present"]
    assert python["detail"] == ".".join(map(str, sys.version_info[:3]))


def test_look_for_java__none_on_the_path__names_the_package_to_install() -> None:
    result = run("--role", "auditor")

    assert result.exit_code == 1
    assert "install the Debian package openjdk-17-jre-headless" in result.output
    (line,) = [line for line in result.output.splitlines() if " java " in line]
    assert line.startswith("missing")


@pytest.mark.parametrize(
    ("says", "version"),
    [
        (JAVA_17, 17),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('java version "11.0.2" 2019-01-15 LTS', 11),
        ("no version at all", None),
    ],
)
def test_look_for_java__on_the_path__reads_its_major_version(
    programs: Path, says: str, version: int | None
) -> None:
    install_java(programs, says)

    assert java_version() == version
    assert findings_of()["java"]["present"] == (version is not None and version >= 17)


def test_look_for_java__too_old__says_what_was_found(programs: Path) -> None:
    install_java(programs, 'openjdk version "11.0.2" 2019-01-15')

    java = findings_of()["java"]

    assert not java["present"]
    assert java["detail"] == (
        "found 11, needs 17: install the Debian package openjdk-17-jre-headless"
    )


@pytest.mark.parametrize("name", ["java", "node", "anvil"])
def test_look_for_program__one_that_cannot_run__is_missing(programs: Path, name: str) -> None:
    install(programs, name, "\x7fELF of another machine")

    assert not findings_of()[name]["present"]


def test_look_for_program__one_that_answers__shows_its_first_line(programs: Path) -> None:
    install(programs, "anvil", "#!/bin/sh\necho 'anvil 1.7.1'\necho 'more'\n")

    anvil = findings_of("--role", "developer")["anvil"]

    assert (anvil["present"], anvil["detail"]) == (True, "anvil 1.7.1")


def test_look_for_program__one_that_fails__is_missing(programs: Path) -> None:
    install(programs, "anvil", "#!/bin/sh\nexit 3\n")

    assert not findings_of("--role", "developer")["anvil"]["present"]


@pytest.mark.parametrize(
    ("package", "hint"),
    [
        ("sqlalchemy", ".[indexer]"),
        ("pyspark", ".[audit]"),
        ("ape", ".[contracts]"),
    ],
)
def test_look_for_package__not_installed__names_the_extra(
    package: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else 1)

    finding = next(finding for finding in inspect_machine() if finding.name == package)

    assert not finding.present
    assert hint in finding.detail


@pytest.mark.parametrize(
    ("present", "exit_code", "mark"), [(True, 0, "ok "), (False, 1, "missing")]
)
def test_run__everything_there_or_something_lacking__exits_0_or_1(
    present: bool, exit_code: int, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = [
        Finding("everyone", "python", True, "3.11.9"),
        Finding("auditor", "java", present, "17"),
    ]
    monkeypatch.setattr("chainkit.cli.doctor.inspect_machine", lambda: findings)

    result = run()

    assert result.exit_code == run("--json").exit_code == exit_code
    assert result.output.splitlines()[1].startswith(mark)
    assert run("--role", "operator").exit_code == 0
