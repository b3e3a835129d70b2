"""A live page that stays open in a headless browser, and is looked at again and again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

from localnet.process import end, end_with_parent, interruptions_deferred
from support.project import ROOT


class LivePage:
    """A context manager around the browser; each method is one line of watch.mjs."""

    def __init__(self, url: str) -> None:
        node = shutil.which("node")
        assert node is not None, "node is not on the PATH: `make setup` installs it"
        with interruptions_deferred():
            self._process = subprocess.Popen(
                [node, str(ROOT / "tests" / "browser" / "watch.mjs"), url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=end_with_parent,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        end(self._process)
        self._process.stdout.close()

    def wait(self, selector: str, text: str) -> None:
        """Wait until an element has a text within it."""
        self._do("wait", selector=selector, text=text)

    def look(self, width: int, scheme: str, path: Path | None = None) -> dict[str, Any]:
        """Load the page at a width, light or dark; ``path`` keeps a picture of it."""
        values = {} if path is None else {"path": str(path)}
        seen: dict[str, Any] = self._do("look", width=width, scheme=scheme, **values)
        return seen

    def read(self) -> dict[str, Any]:
        """Everything that does not depend on the width."""
        seen: dict[str, Any] = self._do("read")
        return seen

    def rows(self, table: str) -> list[list[str]]:
        """The cells of a table, by rows."""
        rows: list[list[str]] = self._do("rows", id=table)
        return rows

    def remember(self, table: str) -> None:
        """Remember the rows of a table."""
        self._do("remember", id=table)

    def is_kept(self) -> bool:
        """Whether the rows that were remembered are still the same elements."""
        return bool(self._do("isKept"))

    def _do(self, action: str, **values: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"name": action, "values": values}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{action}: the browser ended with {self._process.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["answer"]


def picture(name: str) -> Path | None:
    """Where a picture is kept for a person, if the environment names a folder."""
    folder = os.environ.get("CHAINKIT_TEST_PICTURES")
    return None if folder is None else Path(folder, f"{name}.png")
