"""Compiles Solidity with the compiler of package-lock.json, and contracts as they are deployed.

Ape compiles `contracts/` only, and another folder only instead of it. So the contracts of tests and
the gas study are compiled here, with the settings of ape-config.yaml: the code equals Ape's code of
the same sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError
from localnet.deployment import PROJECT, ape_environment

Json = dict[str, Any]

CACHE: Final = PROJECT / ".cache" / "solidity"
PRODUCTION: Final = "contracts"
"""The folder that other contracts may import from."""

_OUTPUTS: Final = ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]


@dataclass(frozen=True)
class Contract:
    """A compiled contract; an interface or an abstract contract has no code."""

    name: str
    source: str
    """The file's path, from the project's root."""
    abi: list[Json]
    creation_code: bytes
    runtime_code: bytes


def compiled_contracts(*folders: str) -> dict[str, Contract]:
    """Return the contracts of some of the project's folders, by name.

    The compiler's output is kept below `.cache` by a digest of its input, and a second process
    waits for the first. Raises ConfigurationError if the sources do not compile.
    """
    sources = read_sources(PROJECT, PRODUCTION, *folders)
    wanted = [path for path in sources if path.startswith(tuple(f"{each}/" for each in folders))]
    selection = {path: {"*": _OUTPUTS} for path in wanted}
    output = _compiled_once(standard_input(sources, deployed_settings(), selection))
    return {
        name: Contract(
            name,
            path,
            contract["abi"],
            bytes.fromhex(contract["evm"]["bytecode"]["object"]),
            bytes.fromhex(contract["evm"]["deployedBytecode"]["object"]),
        )
        for path, contracts in output["contracts"].items()
        for name, contract in contracts.items()
    }


def read_sources(root: Path, *folders: str) -> dict[str, str]:
    """Return the texts of the Solidity files below folders of a root, by path from the root."""
    paths = sorted({path for folder in folders for path in (root / folder).rglob("*.sol")})
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}


def deployed_settings() -> Json:
    """Return the compiler's settings that Ape deploys with; 200 runs are its default."""
    config = yaml.safe_load((PROJECT / "ape-config.yaml").read_text("utf-8"))["solidity"]
    return {
        "evmVersion": config["evm_version"],
        "optimizer": {"enabled": True, "runs": 200},
        "remappings": sorted(config["import_remapping"]),
    }


def standard_input(sources: Mapping[str, str], settings: Json, selection: Json) -> Json:
    """Return the compiler's input; the selection names the outputs by file and contract."""
    return {
        "language": "Solidity",
        "sources": {path: {"content": text} for path, text in sources.items()},
        "settings": settings | {"outputSelection": selection},
    }


def compile_standard(request: Json) -> Json:
    """Return the compiler's output for a standard input; imports of packages are read here.

    Raises ConfigurationError with the compiler's first error.
    """
    done = subprocess.run(
        ["node", PROJECT / "tools" / "solc.js", "--standard-json"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=True,
        env=ape_environment(),
    )
    output: Json = json.loads(done.stdout)
    errors = [each for each in output.get("errors", []) if each["severity"] == "error"]
    if errors:
        raise ConfigurationError(
            "Solidity", "sources that compile", errors[0]["formattedMessage"].strip()
        )
    return output


def _compiled_once(request: Json) -> Json:
    path = CACHE / f"{_digest(request)}.json"
    with _alone(CACHE):
        if not path.exists():
            output = compile_standard(request)
            with moved_into_place(path) as partial:
                partial.write_text(json.dumps(output), "utf-8")
    found: Json = json.loads(path.read_text("utf-8"))
    return found


def _digest(request: Json) -> str:
    """Return a hash of all that the output depends on: npm's list says which packages there are."""
    packages = (PROJECT / "node_modules" / ".package-lock.json").read_bytes()
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode() + packages).hexdigest()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes waiting that want the same folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
