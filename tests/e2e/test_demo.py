from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.terminal.java import JAVA_HINT, MINIMUM_JAVA, java_version
from localnet.deployment import PROJECT
from support.seeds import IS_SOAK, only_in_soak

EXPECTED_KEYS = {
    *("messages_published", "envelopes_per_node", "quarantined", "reorg"),
    *("honest_nodes_identical", "findings", "expected_findings", "report_verified"),
    *("bundle_verified", "node_disabled", "audit_sees_disabled", "proposals"),
    *("html_report", "real_client_messages", "seconds"),
    *("live_lies_told", "live_lies_reported", "live_lies_proved_by_client", "second_device"),
}
MARK = "CHAINKIT_TEST_MARK"

needs_java = pytest.mark.skipif(
    (java_version() or 0) < MINIMUM_JAVA, reason=f"the audit needs Java: {JAVA_HINT}"
)


class Demo:
    """A running demo, all of whose processes can be found by a mark in their environment."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "demo", "--out", str(out)],
            cwd=PROJECT,
            env=os.environ | {MARK: self.mark, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if text in line:
                return
        raise AssertionError(f"the demo ended before it printed {text!r}")

    def finish(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=600)
        return self.process.returncode, output

    def living_processes(self) -> list[str]:
        wanted = f"{MARK}={self.mark}".encode()
        return [
            command.replace(b"\0", b" ").decode()
            for folder in Path("/proc").glob("[0-9]*")
            if wanted in _read(folder / "environ") and (command := _read(folder / "cmdline"))
        ]

    def wait_until_alone(self) -> list[str]:
        deadline = time.monotonic() + 30
        while (living := self.living_processes()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return living


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Demo]]:
    """Demos that run while others beside them are interrupted; in a soak two of them, else one."""
    folder = tmp_path_factory.mktemp("demos")
    demos = [Demo(folder / f"{number}") for number in range(2 if IS_SOAK else 1)]
    try:
        yield demos
    finally:
        for demo in demos:
            demo.process.kill()
            demo.process.communicate()
        assert [demo.wait_until_alone() for demo in demos] == [[] for _ in demos]


@pytest.fixture(scope="module")
def finished(running: list[Demo]) -> list[tuple[int, str, Path]]:
    return [(*demo.finish(), demo.out) for demo in running]


def summary(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())


# First, so that the whole demo runs beside these: neither may hinder the other.
@needs_java
@pytest.mark.parametrize(
    ("number", "stage"),
    [
        pytest.param(signal.SIGTERM, "[2/", id="council decides"),
        pytest.param(signal.SIGINT, "[3/", id="nodes index", marks=only_in_soak),
        pytest.param(signal.SIGKILL, "[3/", id="killed while nodes index", marks=only_in_soak),
    ],
)
@pytest.mark.timeout(600)
def test_demo__interrupted__leaves_no_process(
    number: signal.Signals, stage: str, running: list[Demo], tmp_path: Path
) -> None:
    demo = Demo(tmp_path / "demo")
    demo.read_until(stage)
    assert any("anvil" in command for command in demo.living_processes())

    demo.process.send_signal(number)
    code, output = demo.finish()

    assert demo.wait_until_alone() == []
    if number is not signal.SIGKILL:
        assert code == 130, output
        assert list(tmp_path.iterdir()) == []


@needs_java
@pytest.mark.timeout(900)
def test_demo__beside_others__holds(finished: list[tuple[int, str, Path]]) -> None:
    for code, output, folder in finished:
        assert code == 0, output
        content = summary(folder)
        assert content.keys() >= EXPECTED_KEYS
        assert content["ok"] and content["faults"] == []


@needs_java
@pytest.mark.timeout(900)
def test_demo__summary__tells_what_happened(finished: list[tuple[int, str, Path]]) -> None:
    _, output, folder = finished[0]
    content = summary(folder)
    reorg = content["reorg"]

    assert reorg["dropped"] > 0 and reorg["moved"] > 0 and reorg["depth"] > 1
    held = content["messages_published"] - reorg["dropped"] - content["quarantined"]
    assert set(content["envelopes_per_node"].values()) == {held}
    assert content["findings"] == content["expected_findings"] != {}
    assert content["real_client_messages"] == 2
    assert content["second_device"]["proven"] >= content["second_device"]["texts"] == 1
    assert content["live_lies_told"] == content["live_lies_reported"]
    assert content["live_lies_told"] == content["live_lies_proved_by_client"]
    assert len(content["live_lies_told"]) == 4
    report = (folder / "audit" / "report.html").read_text()
    assert "<svg" in report
    # The page names the nodes' addresses, and loads nothing from anywhere.
    assert re.search(r"""(?:src|href|url)\s*[=(]\s*["']?https?:""", report) is None
    assert "the story holds" in output
