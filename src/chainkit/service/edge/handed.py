"""A command hands itself a file in memory across the start of Envoy.

Options may name secrets, and everybody can read the command line of a process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

DESCRIPTOR: Final = "CHAINKIT_HANDED_OVER"
"""The variable with the number of the file's descriptor."""


@dataclass(frozen=True, slots=True)
class Handed:
    """How to start the command again."""

    arguments: Sequence[str]
    """The command line behind the program's name."""
    folder: str
    """The working directory."""
    places: str
    """The folder of this process's files."""
    executable: str
    """Python's, for child processes."""
    variables: Mapping[str, str | None]
    """The environment where Envoy needs another one, as it was; None for what was not set."""


def hand_over(handed: Handed) -> int:
    """Write the file, and return its descriptor."""
    return file_in_memory("chainkit", json.dumps(asdict(handed)).encode())


def file_in_memory(name: str, content: bytes) -> int:
    """Return a descriptor of the content, which an exec of this process keeps."""
    file = os.memfd_create(name, 0)
    os.write(file, content)
    return file


def take_over() -> Handed:
    """Return what was handed over, and become the process that it describes."""
    file = int(os.environ.pop(DESCRIPTOR))
    os.lseek(file, 0, os.SEEK_SET)
    with open(file, encoding="utf-8") as content:
        found: dict[str, Any] = json.load(content)
    handed = Handed(**found)
    for name, value in handed.variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    # pyvoy puts the working directory first, where anybody's modules may lie.
    sys.path[:] = [each for each in sys.path if each != "."]
    os.chdir(handed.folder)
    sys.executable = handed.executable
    sys.argv = ["chainkit", *handed.arguments]
    return handed
