"""Refuses to build a wheel without the MLS engine, whose bundle set-up builds and git ignores."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MLS = "client/chainkit_client/mls"


class EngineBundled(BuildHookInterface[Any]):
    """Compares the bundle with its pinned digests before a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End the build with 1 where a file of the bundle is missing or has another digest."""
        # Set-up installs the project editable before it builds the bundle.
        if version == "editable":
            return
        folder = Path(self.root, MLS)
        for line in (folder / "bundle.sha256").read_text(encoding="ascii").splitlines():
            expected, name = line.split("  ")
            file = folder / "bundle" / name
            found = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "no file"
            if found != expected:
                self.app.abort(
                    f"{MLS}/bundle/{name}: expected SHA-256 {expected}, got {found}: "
                    "run `make mls-engine` first"
                )
