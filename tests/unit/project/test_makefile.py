"""Where `make` has the tools keep their files."""

from __future__ import annotations

import os
import subprocess

import pytest

from support.project import ROOT

FOLDERS = [
    "APE_DATA_FOLDER",
    "MPLCONFIGDIR",
    "PIP_CACHE_DIR",
    "SOLCX_BINARY_PATH",
    "UV_CACHE_DIR",
    "npm_config_cache",
]


def environment_of_a_recipe(**given: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in FOLDERS}
    done = subprocess.run(
        ["make", "--silent", "--no-print-directory", "--eval=environment:;@env -0", "environment"],
        cwd=ROOT,
        env=kept | given,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


def test_recipe__whatever_a_tool_downloads__stays_below_the_project() -> None:
    found = environment_of_a_recipe()

    for name in FOLDERS:
        assert found[name].startswith(f"{ROOT}/.cache/"), name


@pytest.mark.parametrize("name", ["UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache"])
def test_recipe__downloads_that_are_shared_between_clones__are_where_the_environment_says(
    name: str,
) -> None:
    assert environment_of_a_recipe(**{name: "/shared"})[name] == "/shared"
