"""hardhat as a child process: it mines each transaction at once, and takes a snapshot back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from chainkit_client.mls.program import find_node
from localnet.ports import free_port
from localnet.process import end, end_with_parent
from support.chains.starting import answering_endpoint
from support.project import ROOT

_FOLDER: Final = ROOT / ".cache" / "hardhat"


def program() -> Path | None:
    """The hardhat that `make test-chains` installs."""
    found = _FOLDER / "node_modules" / "hardhat" / "dist" / "src" / "cli.js"
    return found if found.exists() else None


class Hardhat:
    """A running hardhat; use as a context manager. ``url`` is its endpoint."""

    chain_id = 31337

    def __init__(self, folder: Path) -> None:
        """Start hardhat, and wait until it answers."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        log_path = folder / "log"
        with log_path.open("w") as log:
            self._process = subprocess.Popen(
                [find_node(), program(), "node", "--hostname", "127.0.0.1", "--port", str(port)],
                cwd=_FOLDER,
                env=os.environ | {"HARDHAT_DISABLE_TELEMETRY": "true"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        self.endpoint = answering_endpoint(self.url, log_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)

    @contextmanager
    def mining(self) -> Iterator[None]:
        """Do nothing: each transaction is mined as it comes."""
        yield

    def snapshot(self) -> str:
        """Return the id of the chain's state."""
        return str(self.endpoint.request("evm_snapshot"))

    def take_back(self, snapshot: str) -> None:
        """Take all blocks since a snapshot back."""
        assert self.endpoint.request("evm_revert", snapshot)
