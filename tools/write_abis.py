"""Writes the contracts' ABIs into the Python package, or checks that they are there.

Run `python tools/write_abis.py` after a contract changed; `--check` writes nothing and exits 1 if
a file in `src/chainkit/abi/` is not what the contracts compile to.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import click
from ape import Project, compilers
from ape.logging import LogLevel, logger
from ethpm_types import ContractType

ROOT = Path(__file__).resolve().parent.parent
ABI_FOLDER = ROOT / "src" / "chainkit" / "abi"
CONTRACT_NAMES = ("GroupMessages", "IdentityUpdates", "NodeRegistry", "OriginatorSequence")


def compiled_contracts(root: Path = ROOT) -> list[ContractType]:
    """Compile every contract from source.

    Ape's own cache is left alone: it does not notice when a file that a contract imports changed.
    """
    project = Project(root)
    with logger.at_level(LogLevel.WARNING):
        return list(compilers.compile(list(project.sources.paths), project=project))


def abis_of(compiled: Iterable[ContractType]) -> dict[str, str]:
    """Return the JSON text of each shipped contract's ABI by contract name.

    A proxy's file holds its implementation's ABI: that is what its callers call.
    """
    contracts = {contract.name: contract for contract in compiled}
    return {name: _as_json(contracts[name]) for name in CONTRACT_NAMES}


def _as_json(contract: ContractType) -> str:
    abi = contract.model_dump(mode="json", by_alias=True, exclude_none=True)["abi"]
    return json.dumps(abi, indent=2, sort_keys=True) + "\n"


def drifting_files(abis: dict[str, str], folder: Path = ABI_FOLDER) -> list[str]:
    """Return the names of the files that are missing or differ from the compiled ABIs."""
    return [f"{name}.json" for name, text in abis.items() if _read(folder / f"{name}.json") != text]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def write(abis: dict[str, str], folder: Path = ABI_FOLDER) -> None:
    """Write one file per contract into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in abis.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file drifted.")
def main(check: bool) -> None:
    """Write the contracts' ABIs into src/chainkit/abi/.

    Example: python tools/write_abis.py --check
    """
    abis = abis_of(compiled_contracts())
    drifting = drifting_files(abis)
    if check and drifting:
        click.echo(f"src/chainkit/abi: {', '.join(drifting)} differ from contracts/", err=True)
        click.echo("run: python tools/write_abis.py", err=True)
        sys.exit(1)
    if not check:
        write(abis)
    click.echo(f"{len(abis)} ABIs, {0 if check else len(drifting)} written anew")


if __name__ == "__main__":
    main()
