import shutil
from types import SimpleNamespace

import pytest

from scripts import _contracts
from support.project import ROOT


@pytest.fixture
def compilations(tmp_path, monkeypatch):
    """How often a copy of the sources was compiled."""
    shutil.copytree(ROOT / "contracts", tmp_path / "contracts")
    (tmp_path / "requirements").mkdir()
    for name in ("ape-config.yaml", "package-lock.json", "requirements/dev.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    copy = SimpleNamespace(path=tmp_path, contracts_folder=tmp_path / "contracts")
    types = [each.contract_type for each in _contracts.compile_contracts().values()]
    done = []
    monkeypatch.setattr(_contracts, "project", copy)
    monkeypatch.setattr(_contracts, "_compiled", lambda: done.append(1) or types)
    return done


def test_compile__same_sources_again__takes_what_was_compiled(compilations):
    first, again = _contracts.compile_contracts(), _contracts.compile_contracts()

    assert len(compilations) == 1
    assert first.keys() == again.keys()
    assert all(first[name].contract_type == again[name].contract_type for name in first)


@pytest.mark.parametrize(
    "name",
    [
        "contracts/GroupMessages.sol",
        "contracts/base/SequencedLog.sol",
        "package-lock.json",
        "ape-config.yaml",
        "requirements/dev.txt",
    ],
)
def test_compile__anything_that_decides_the_code_changed__compiles_again(
    compilations, tmp_path, name
):
    _contracts.compile_contracts()
    with (tmp_path / name).open("a") as file:
        file.write("\n")

    _contracts.compile_contracts()

    assert len(compilations) == 2
