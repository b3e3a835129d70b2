"""The package's copies of the contracts' ABIs and code; `make check` compares them with sources."""

from pathlib import Path

import click
import pytest

from chainkit.contracts.artifacts import CONTRACTS, creation_code
from tools import write_abis
from tools.solidity import compiled_contracts


def test_compiled_contracts__of_contracts__have_the_code_that_is_shipped() -> None:
    compiled = compiled_contracts("contracts")

    for name in CONTRACTS:
        assert compiled[name].creation_code == creation_code(name)


def test_drifting_files__one_changed_and_one_missing__names_both(tmp_path: Path) -> None:
    files = {"abi/Same.json": "[]\n", "abi/Changed.json": "[]\n", "artifact/Missing.json": "{}\n"}
    write_abis.write({"abi/Same.json": "[]\n", "abi/Changed.json": "[ ]\n"}, tmp_path)
    drifting = ["abi/Changed.json", "artifact/Missing.json"]
    assert write_abis.drifting_files(files, tmp_path) == drifting
    write_abis.write(files, tmp_path)
    assert write_abis.drifting_files(files, tmp_path) == []


def test_release__noted_twice__is_refused(tmp_path: Path) -> None:
    compilation = write_abis.Compilation()
    once = write_abis.with_release(write_abis.read_releases(tmp_path), compilation, "1.0.0")
    assert [[noted["version"] for noted in releases] for releases in once.values()] == [
        ["1.0.0"],
        ["1.0.0"],
    ]
    with pytest.raises(click.ClickException, match=r"1\.0\.0 is noted already"):
        write_abis.with_release(once, compilation, "1.0.0")
