"""The contracts as their sources stand now."""

from ape import compilers, project
from ape.contracts import ContractContainer
from ape.logging import LogLevel, logger


def compile_contracts() -> dict[str, ContractContainer]:
    """Compile the contracts that can be deployed and return them by name.

    Those are the files directly in `contracts/`: below are interfaces and bases.

    Ape's own cache is neither read nor written: it does not notice when a file that a contract
    imports has changed, and would have the old code deployed.
    """
    paths = [path for path in project.sources.paths if path.parent == project.contracts_folder]
    with logger.at_level(LogLevel.WARNING):
        contract_types = list(compilers.compile(paths, project=project))
    return {
        contract_type.name: ContractContainer(contract_type)
        for contract_type in contract_types
        if contract_type.name
    }
