"""People who type the client's commands, and check what they prove to each other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain import Endpoint
from localnet.commands import Settings
from support.command_line import run


@dataclass
class TypingPerson:
    """Somebody's home folder, and the gateway that is used."""

    home: Path
    gateway_url: str
    password: str

    @property
    def init(self) -> list[str | Path]:
        return ["init", "--gateway", self.gateway_url]

    def words(self, *words: str | Path) -> list[str]:
        return ["client", *map(str, words), "--home", str(self.home)]

    def do(self, *words: str | Path) -> Any:
        """A command's JSON."""
        return json.loads(self.say(*words, "--json"))

    def say(self, *words: str | Path, expected: int = 0, typed: str = "") -> str:
        done = run(*self.words(*words), typed=typed)
        assert done.code == expected, done.err
        return done.out

    def fail(self, *words: str | Path, typed: str = "") -> str:
        """The words of a command that cannot be done."""
        done = run(*self.words(*words), typed=typed)
        assert done.code == 2, done.err
        assert self.password not in done.err
        return " ".join(done.err.split())


def people_at(
    settings: Settings, gateway_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[TypingPerson]:
    """Ann and Ben, who have set the environment as the settings say."""
    for name in ("CHAINKIT_RPC", "CHAINKIT_DEPLOYMENT", "CHAINKIT_PASSWORD_FILE"):
        monkeypatch.setenv(name, settings.environment[name])
    return [TypingPerson(folder / each, gateway_url, settings.password) for each in ("ann", "ben")]


def check_proofs(
    ann: TypingPerson, lines: list[dict[str, Any]], settings: Settings, folder: Path
) -> None:
    """A client can show others a message of a node, and the commit that removed Ben."""
    endpoint = Endpoint.connect(settings.environment["CHAINKIT_RPC"])
    path = folder / "proof.json"
    [*_, message] = [each for each in lines if each["kind"] == "text"]
    commit, *_ = [each for each in lines if each["kind"] == "removed"]
    for line, originator in ((message, 100), (commit, 0)):
        told = ann.do("prove", line["id"][:8], "--out", path)
        assert (told["originator"], told["sequence_id"]) == (originator, line["sequence_id"])
        trusted = endpoint.header(told["block"]).hash.hex()
        verify = ["client", "verify", str(path), "--json", "--trust"]
        done = run(*verify, trusted)
        assert done.code == 0, done.err
        shown = json.loads(done.out)
        assert shown.pop("verdict") == "proved"
        assert shown == {name: told[name] for name in shown}
        # Another block's hash is no reason to doubt the message.
        done = run(*verify, endpoint.header(told["block"] - 1).hash.hex())
        assert done.code == 2
        assert f"the hash of block {told['block']}" in done.err
        assert f"missing --trust: the hash of block {told['block']}" in run(*verify[:3]).err
    assert "expected the beginning of a message's id" in ann.fail("prove", "ffff" * 16)
