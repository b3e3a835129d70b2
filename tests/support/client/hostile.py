"""A member that breaks the rules of MLS: the engine's program, with calls that it lacks."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import time
from typing import Final

from chainkit_client.mls.child import Child, ChildLimits
from chainkit_client.mls.frames import number
from chainkit_client.mls.program import find_node

TESTS: Final = Path(__file__).parents[2] / "client"
PAST_EPOCHS: Final = 3


def bundle(entry: str, folder: Path, *options: str) -> Path:
    """Bundle one of the programs beside the tests, and return its path."""
    outfile = folder / "-".join([*options, entry])
    command = ["node", str(TESTS / "bundle.mjs"), str(TESTS / entry), str(outfile), *options]
    subprocess.run(command, check=True, timeout=60)
    return outfile


class Hostile:
    """Answers as the program's ``CALLS`` say; a child that ends is not replaced."""

    def __init__(self, program: Path, limits: ChildLimits) -> None:
        self.child = Child(find_node(), program, limits)

    def call(self, name: str, *arguments: bytes) -> list[bytes]:
        """Return the fields of the answer."""
        _, word, *fields = self.child.ask(
            [number(1), number(int(time())), number(PAST_EPOCHS), name.encode(), *arguments]
        )
        assert word == b"done", fields
        return fields
