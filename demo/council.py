"""The security council of the story: a Safe of three owners, two of whom must sign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from demo.progress import say
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.commands import Settings, run, run_json
from localnet.council import DEPLOYER, OWNERS, PAYER, create_council, keystore

SIGNERS: Final = ("ann", "cleo")
"""Two of the three owners."""


class Council:
    """The owners with their keystores, and their common decisions."""

    def __init__(self, settings: Settings, folder: Path, password: str) -> None:
        """Take the folder for its files."""
        self._settings = settings
        self._folder = folder
        self._password = password
        self._file = folder / "council.json"
        self.decided = 0
        """Proposals that were executed."""

    def take_over(self, anvil: Anvil) -> str:
        """Create the Safe and let it take the registry over; return its address."""
        self._folder.mkdir()
        safe = create_council(anvil, self._folder, self._password)
        sending = ("--broadcast", "--keystore", self._keystore(DEPLOYER))
        run(self._settings, "registry", "hand-over", "--to", safe, *sending)
        run(self._settings, "council", "init", safe, "--council", self._file)
        self._name_owners()
        self.decide("accept", "the Safe takes the registry over", "registry", "accept")
        return safe

    def decide(self, name: str, reason: str, *command: str | Path) -> str:
        """Draft a proposal by a command, let two owners sign it separately, and execute it.

        Returns the SafeTx hash.
        """
        path = self._folder / f"{name}.json"
        terms = ("--council", self._file, "--reason", reason)
        run(self._settings, *command, "--propose", path, *terms)
        hash_: str = json.loads(path.read_text())["hashes"]["safe_tx"]
        copies = [self._signed(path, hash_, owner) for owner in SIGNERS]
        run(self._settings, "council", "collect", path, *copies, "--council", self._file)
        sending = ("--broadcast", "--keystore", self._keystore(PAYER))
        run(self._settings, "council", "execute", path, "--council", self._file, *sending)
        self.decided += 1
        say(f"{reason}: signed by {' and '.join(SIGNERS)}, executed")
        return hash_

    def log(self) -> list[dict[str, Any]]:
        """Return what the council did, rebuilt from the chain alone."""
        # Exit code 1 means "somebody else acted, too": the deployer, who handed over.
        found = run_json(self._settings, "council", "log", "--council", self._file, expected=(0, 1))
        return [act for transaction in found["transactions"] for act in transaction["acts"]]

    def _signed(self, path: Path, hash_: str, owner: str) -> Path:
        """Let an owner sign a copy of his own, after he compared the hash."""
        copy = path.with_name(f"{path.stem}-{owner}.json")
        copy.write_bytes(path.read_bytes())
        own = ("--council", self._file, "--keystore", self._keystore(owner))
        run(
            self._settings,
            "council",
            "sign",
            "--digits-from-pipe",
            copy,
            *own,
            typed=hash_[2:18] + "\n",
        )
        return copy

    def _name_owners(self) -> None:
        content = json.loads(self._file.read_text())
        content["names"] = {
            name: development_account(number).address for name, number in OWNERS.items()
        }
        self._file.write_text(json.dumps(content, indent=2) + "\n")

    def _keystore(self, name: str) -> Path:
        return keystore(self._folder, name)


def desired_nodes(nodes: Sequence[dict[str, str]]) -> str:
    """Return a YAML file of enabled nodes, as `chainkit registry plan` takes it."""
    lines = ["nodes:"]
    for node in nodes:
        lines += [
            f'  - key: "{node["public_key"]}"',
            f'    holder: "{node["address"]}"',
            f'    http_address: "{node["http_address"]}"',
            "    status: enabled",
        ]
    return "\n".join(lines) + "\n"
