"""The contracts, compiled from their present sources."""

import hashlib

from ape import compilers, project
from ape.contracts import ContractContainer
from ape.logging import LogLevel, logger
from ethpm_types import ContractType
from pydantic import TypeAdapter

from chainkit.documents.files import moved_into_place

_INPUTS = ("ape-config.yaml", "package-lock.json", "requirements/dev.txt")
_TYPES = TypeAdapter(list[ContractType])


def compile_contracts() -> dict[str, ContractContainer]:
    """Compile the contracts that can be deployed and return them by name.

    Only files directly in `contracts/` can be deployed: below are interfaces and bases. `.build/`
    keeps the result for the same sources, packages and settings: compiling takes longer than
    deploying.

    Ape's own cache is neither read nor written: it does not notice when a file that a contract
    imports has changed, and would have the old code deployed.
    """
    kept = project.path / ".build" / f"deployable-{_digest()}.json"
    if kept.exists():
        contract_types = _TYPES.validate_json(kept.read_bytes())
    else:
        contract_types = _compiled()
        kept.parent.mkdir(exist_ok=True)
        with moved_into_place(kept) as partial:
            partial.write_bytes(_TYPES.dump_json(contract_types, by_alias=True, exclude_none=True))
    return {each.name: ContractContainer(each) for each in contract_types if each.name}


def _compiled() -> list[ContractType]:
    paths = [path for path in project.sources.paths if path.parent == project.contracts_folder]
    with logger.at_level(LogLevel.WARNING):
        return list(compilers.compile(paths, project=project))


def _digest() -> str:
    """Return a digest of all that decides the code: sources, packages, compiler, settings."""
    inputs = [project.path / name for name in _INPUTS]
    digest = hashlib.sha256()
    for path in [*inputs, *sorted(project.contracts_folder.rglob("*.sol"))]:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(project.path)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
