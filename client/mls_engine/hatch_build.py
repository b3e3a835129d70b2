"""Refuses to build a wheel without the MLS engine, or the page for backup account files.

Set-up builds both bundles, and git ignores them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("client/chainkit_client/mls", "client/chainkit_client/accounts")


class EngineBundled(BuildHookInterface[Any]):
    """Compares the bundle with its pinned digests before a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End the build with 1 where a file of the bundle is missing or has another digest."""
        # Set-up installs the project editable before it builds the bundle.
        if version == "editable":
            return
        for room in ROOMS:
            self._compare(room)

    def _compare(self, room: str) -> None:
        folder = Path(self.root, room)
        for line in (folder / "bundle.sha256").read_text(encoding="ascii").splitlines():
            expected, name = line.split("  ")
            file = folder / "bundle" / name
            found = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "no file"
            if found != expected:
                self.app.abort(
                    f"{room}/bundle/{name}: expected SHA-256 {expected}, got {found}: "
                    "run `make mls-engine` first"
                )
