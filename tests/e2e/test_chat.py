"""`make chat` as a person sees it, and its script: both agree, and a phone gets the past."""

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
    # The words from before it asked came to Alice's phone, and the network has the envelopes.
    assert "0 invented, 0 disputed, 0 omitted" in done.stdout
    phone = [each for each in done.stdout.splitlines() if each.startswith("phone: ")]
    for text in TEXTS[:2]:
        [line] = [each for each in phone if f"  {text}  (from device " in each]
        assert line.endswith(", the network has its envelope)")


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
            # F4: her phone asks, and Alice types the PIN that it shows.
            os.write(controller, b"\x1bOS")
            shown = shown_until(controller, b"phone shows the PIN ")
            while not (pin := re.search(rb"phone shows the PIN (\d{4})", shown)):
                shown += os.read(controller, 65536)
            os.write(controller, pin[1] + b"\r")
            shown_until(controller, b"0 omitted")
            os.write(controller, b"\x03")
            shown_until(controller, None)
            assert process.wait(60) == 0
        finally:
            process.send_signal(signal.SIGTERM)
            os.close(controller)


def shown_until(controller: int, words: bytes | None, times: int = 1) -> bytes:
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
            return shown
        shown += more
    return shown
