"""A headless browser that loads a page and returns what a reader would see."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.project import ROOT

_PATIENCE = 120


@dataclass(frozen=True)
class Seen:
    """The answers of look.mjs about a page, and the page as it is printed."""

    told: dict[str, Any]
    printed: bytes

    def __getitem__(self, name: str) -> Any:
        return self.told[name]

    @property
    def printed_pages(self) -> int:
        return len(re.findall(rb"/Type\s*/Page\b", self.printed))

    @property
    def printed_headings(self) -> list[str]:
        """The titles in the printed document's outline, which a browser makes of its headings."""
        titles = re.findall(rb"/Title \(([^)]*)\)", self.printed)
        return [title.decode("latin-1") for title in titles]


def look_at(page: Path) -> Seen:
    """Open a page in Chromium, which `make setup` installs with the npm packages."""
    node = shutil.which("node")
    assert node is not None, "node is not on the PATH: `make setup` installs it"
    printed = page.with_suffix(".pdf")
    run = subprocess.run(
        [node, ROOT / "tests" / "browser" / "look.mjs", page, printed],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    return Seen(json.loads(run.stdout), printed.read_bytes())
