from __future__ import annotations

from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from tools import solidity
from tools.solidity import compiled_contracts, deployed_settings

BASE = "// SPDX-License-Identifier: MIT\npragma solidity 0.8.28;\nabstract contract Base {}\n"
HEIR = """// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;
import {Base} from "../contracts/Base.sol";
contract Heir is Base { function answer() external pure returns (uint256) { return 42; } }
"""
ANSWER_42, ANSWER_43 = (bytes([0x60, number]) for number in (42, 43))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two contracts, one of which imports the other."""
    for name in ("ape-config.yaml", "node_modules", "tools"):
        (tmp_path / name).symlink_to(solidity.PROJECT / name)
    for path, text in {"contracts/Base.sol": BASE, "heirs/Heir.sol": HEIR}.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(solidity, "PROJECT", tmp_path)
    monkeypatch.setattr(solidity, "CACHE", tmp_path / ".cache" / "solidity")
    return tmp_path


@pytest.fixture
def compilations(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[solidity.Json]:
    """The requests to the compiler, in order."""
    asked: list[solidity.Json] = []
    compile_standard = solidity.compile_standard

    def noted(request: solidity.Json) -> solidity.Json:
        asked.append(request)
        return compile_standard(request)

    monkeypatch.setattr(solidity, "compile_standard", noted)
    return asked


def test_compiled_contracts__beside_contracts__import_from_there(project: Path) -> None:
    (heir,) = compiled_contracts("heirs").values()
    assert (heir.name, heir.source) == ("Heir", "heirs/Heir.sol")
    assert [entry["name"] for entry in heir.abi] == ["answer"]
    assert ANSWER_42 in heir.runtime_code
    assert heir.creation_code.endswith(heir.runtime_code)


def test_compiled_contracts__abstract_contract__has_no_code(project: Path) -> None:
    (base,) = compiled_contracts("contracts").values()
    assert (base.creation_code, base.runtime_code) == (b"", b"")


def test_compiled_contracts__twice__compile_once(compilations: list[solidity.Json]) -> None:
    assert compiled_contracts("heirs") == compiled_contracts("heirs")
    assert len(compilations) == 1


def test_compiled_contracts__source_changed__compile_again(
    project: Path, compilations: list[solidity.Json]
) -> None:
    compiled_contracts("heirs")
    (project / "heirs/Heir.sol").write_text(HEIR.replace("42", "43"))
    assert ANSWER_43 in compiled_contracts("heirs")["Heir"].runtime_code
    (project / "contracts/Base.sol").write_text(BASE.replace("{}", "{ uint256 public number; }"))
    assert "number" in {entry["name"] for entry in compiled_contracts("heirs")["Heir"].abi}
    assert len(compilations) == 3


def test_compiled_contracts__sources_that_do_not_compile__are_refused(project: Path) -> None:
    (project / "heirs/Heir.sol").write_text(HEIR.replace("Base.sol", "Nobody.sol"))
    with pytest.raises(ConfigurationError, match=r"heirs/Heir\.sol"):
        compiled_contracts("heirs")
    assert not list((project / ".cache/solidity").glob("*.json"))


def test_deployed_settings__beside_ape_config__name_its_remappings() -> None:
    settings = deployed_settings()
    assert (settings["evmVersion"], settings["optimizer"]["runs"]) == ("cancun", 200)
    assert all(each.startswith("@openzeppelin/") for each in settings["remappings"])
