"""A person's second device: it joined late, and asks the first one for what was said before."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localnet.commands import Settings, run, run_json

TEXT: Final = "before there was a phone"
_DOUBTS: Final = ("invented", "disputed", "omitted", "unchecked")


@dataclass(frozen=True, slots=True)
class Past:
    """The past on the second device."""

    texts: list[str]
    """The texts that it shows as the first device's."""
    proven: int
    """Messages whose envelopes the network has."""
    doubts: dict[str, int]
    """Messages that the first device left out or invented, and those that nobody could check."""


class Devices:
    """Cleo's laptop and phone, and Dora, who is in a group with her."""

    def __init__(
        self, settings: Settings, folder: Path, gateway_url: str, storage_url: str
    ) -> None:
        """Take a folder for their homes, and the services that both of Cleo's devices use."""
        folder.mkdir()
        self._settings = settings
        self._laptop, self._phone, self._dora = (
            folder / each for each in ("laptop", "phone", "dora")
        )
        self._gateway = ("--gateway", gateway_url)
        self._storage = ("--storage", storage_url)

    def talk(self) -> str:
        """Let the laptop say something in a group with Dora; return the group's id."""
        with ThreadPoolExecutor() as threads:
            laptop = threads.submit(self._init, self._laptop, *self._storage)
            dora = threads.submit(self._init, self._dora).result()
            laptop.result()
        group: str = self._on(self._laptop, "group", "new", dora["address"])["group"]
        self._on(self._laptop, "send", group, TEXT)
        return group

    def bring_past(self, group: str) -> Past:
        """Let the phone ask, the laptop approve, and the phone compare with the network."""
        wallet = ("--wallet", self._laptop / "wallet.keystore")
        asked = self._init(self._phone, *wallet, *self._storage)["history"]
        [request] = asked["requests"]
        approve = ("client", "history", "approve", request["id"], "--home", self._laptop)
        run(self._settings, *approve, typed=asked["pin"] + "\n")
        device = self._on(self._phone, "history", "apply")["device"]
        [covered] = self._on(self._phone, "history", "check")
        read = run(self._settings, "client", "read", group, "--home", self._phone, "--json")
        rows = [json.loads(line) for line in read.splitlines()]
        return Past(
            [row["text"] for row in rows if row["kind"] == "text" and row["from_device"] == device],
            covered["proven"],
            {name: covered[name] for name in _DOUBTS},
        )

    def _init(self, home: Path, *options: str | Path) -> dict[str, Any]:
        made: dict[str, Any] = self._on(home, "init", *self._gateway, *options)
        return made

    def _on(self, home: Path, *words: str | Path) -> Any:
        return run_json(self._settings, "client", *words, "--home", home)
