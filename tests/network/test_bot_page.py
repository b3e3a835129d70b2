"""The page on bots: its program answers a person, as the page says, and after a restart too."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localnet.commands import Settings
from localnet.deployment import PROJECT
from localnet.network import Network
from support.command_line import run
from support.network.real_nodes import until

PAGE = PROJECT / "docs" / "bot.md"


@dataclass
class Client:
    """A client's commands."""

    home: Path

    def say(self, *words: str | Path) -> str:
        done = run("client", *map(str, words), "--home", str(self.home))
        assert done.code == 0, done.err
        return done.out

    def texts(self, group: str) -> list[str]:
        read = [json.loads(line) for line in self.say("read", group, "--json").splitlines()]
        return [each["text"] for each in read if each["kind"] == "text"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "bot.py"
    path.write_text(code)
    return path


@contextmanager
def running(program: Path, bot: Client, settings: Settings) -> Iterator[None]:
    command = [sys.executable, str(program), str(bot.home), str(settings.password_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


def test_bot_page__its_program__echoes_each_message_once_over_a_restart(
    settings: Settings,
    network: Network,
    program: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CHAINKIT_RPC", "CHAINKIT_DEPLOYMENT", "CHAINKIT_PASSWORD_FILE"):
        monkeypatch.setenv(name, settings.environment[name])
    ann, bot = Client(tmp_path / "ann"), Client(tmp_path / "bot")
    init = ("init", "--gateway", network.gateway_url, "--json")
    ann.say(*init)
    registered: dict[str, Any] = json.loads(bot.say(*init))
    group = json.loads(ann.say("group", "new", registered["address"], "--json"))["group"]

    for words in ("hello", "are you still there?"):
        with running(program, bot, settings):
            ann.say("send", group, words)
            until(lambda: f"echo: {words}" in ann.texts(group))  # noqa: B023

    assert ann.texts(group) == [
        *("hello", "echo: hello"),
        *("are you still there?", "echo: are you still there?"),
    ]
