"""A process that has imported what its children need, and forks for each line it is asked with.

Python's own start takes a second; hundreds of lives would take minutes. One line of JSON on
standard input begins lives, and one on standard output says how the lives ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

from support.project import TESTS


class WarmParent:
    """A module's ``__main__`` in a process of its own; use as a context manager."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str]) -> None:
        paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, line: Any) -> None:
        """Begin the lives of a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the next line of the process."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())
