"""Needs of Envoy on this machine: pyvoy with Envoy in it, and Python as a shared library."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Final

from chainkit.errors import ConfigurationError
from chainkit.extras import how_to_install

_SUBJECT: Final = "Envoy"
_LIBRARY: Final = f"libpython{sys.version_info.major}.{sys.version_info.minor}"


def pyvoy_module() -> Path:
    """Return the module of Envoy that holds Python. Raises ConfigurationError without pyvoy."""
    _check_package("pyvoy")
    spec = importlib.util.find_spec("pyvoy._pyvoy")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def shared_library() -> Path:
    """Return Python's shared library. Raises ConfigurationError where there is none."""
    _check_package("find_libpython")
    for each in map(Path, importlib.import_module("find_libpython").candidate_paths()):
        if each.name.startswith("libpython") and each.exists():
            return each
    expected = f"{_LIBRARY}.so, Python's shared library (Debian: apt install {_LIBRARY})"
    raise ConfigurationError(_SUBJECT, expected, "none")


def _check_package(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        expected = f"the package {name}: {how_to_install('node')}"
        raise ConfigurationError(_SUBJECT, expected, "none")
