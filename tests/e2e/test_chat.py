"""`make chat` as a person sees it, and its script: both agree after a reorg and a lie."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

from localnet.deployment import PROJECT

COMMAND = [sys.executable, "-m", "localnet.chat"]
TEXTS = (
    "hello, Bob",
    "after the reorg",
    "a message that a node will replace",
    "after the lie",
)


def test_script__reorg_and_lying_node__both_agree_and_name_the_node() -> None:
    done = subprocess.run(
        [*COMMAND, "--script"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr
    alice, bob = re.split("^Bob: ", done.stdout, flags=re.MULTILINE)
    [liar] = re.findall(r"^node (\d+) has replaced message", done.stdout, re.MULTILINE)
    for seen in (alice, bob):
        said = [line.rpartition("  ")[2] for line in seen.splitlines() if line.startswith("  ")]
        assert [each for each in said if not each.startswith("* ")] == list(TEXTS)
        assert f"node {liar} broke " in seen
        assert "FORKED" not in seen


def test_two_panes__typed_on_a_terminal_and_ended__both_show_it_and_nothing_is_left() -> None:
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (40, 180))
    environment = os.environ | {"TERM": "xterm-256color"}
    with subprocess.Popen(
        COMMAND,
        cwd=PROJECT,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(terminal)
        try:
            shown_until(controller, b"the other one types")
            os.write(controller, b"hello-from-the-left\r")
            # Each pane shows it as a line.
            shown_until(controller, b"hello-from-the-left", times=2)
            os.write(controller, b"\x03")
            shown_until(controller, None)
            assert process.wait(60) == 0
        finally:
            process.send_signal(signal.SIGTERM)
            os.close(controller)


def shown_until(controller: int, words: bytes | None, times: int = 1) -> None:
    """Read the screen until it has shown words so often; None for its end."""
    shown, deadline = b"", time.monotonic() + 120
    while words is None or shown.count(words) < times:
        assert time.monotonic() < deadline, shown[-3000:]
        if not select.select([controller], [], [], 1.0)[0]:
            continue
        try:
            more = os.read(controller, 65536)
        except OSError:
            # Linux says so at the end of the other side.
            more = b""
        if not more:
            assert words is None, shown[-3000:]
            return
        shown += more
