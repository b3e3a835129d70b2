r"""Deploys the contracts to a chain, checks the result and writes the deployment record.

    ape run deploy --network http://127.0.0.1:8545 --account test::0 \
        --parameters deployments/parameters/local.json --record build/deployment.json

The sequence must know its two callers, the implementations must know the sequence, and the proxies
must know their implementations. The circle is cut by the deployer's nonce, which fixes the proxies'
addresses before they exist. The deployer never holds a role: `initialize` and the registry's
constructor name the council's accounts at once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from ape.api import AccountAPI
from ape.cli import account_option
from ape.contracts import ContractContainer

from chainkit.deployment import RECORD_FORMAT, DeploymentRecord, read_deployment_record
from chainkit.errors import WrongChain
from scripts._connection import connected, network_option
from scripts._contracts import compile_contracts
from scripts._parameters import Parameters, read_parameters
from scripts._record import Draft, Entry, drafted
from scripts._verification import DeployedChain, check_deployed, checksummed

Contracts = Mapping[str, ContractContainer]

# The order of the six transactions, as offsets to the deployer's nonce.
_SEQUENCE = 0
_IMPLEMENTATIONS = {"GroupMessages": 1, "IdentityUpdates": 2}
_PROXIES = {"GroupMessages": 3, "IdentityUpdates": 4}
_REGISTRY = 5


def create(account: AccountAPI, nonce: int, container: ContractContainer, *arguments: Any) -> Entry:
    """Deploy one contract with this nonce or not at all; return address, block, transaction."""
    # Not `account.deploy`: on a network given by its URL, that caches types by address on disk,
    # where the next chain with the same addresses would find them.
    receipt = account.call(container(*arguments, sender=account.address, nonce=nonce))
    return {
        "address": receipt.contract_address,
        "block": receipt.block_number,
        "transaction": receipt.txn_hash,
    }


def create_all(account: AccountAPI, parameters: Parameters, draft: Draft) -> None:
    """Deploy everything in the one order that the predicted addresses allow, into the draft."""
    contracts = compile_contracts()
    first = account.nonce
    proxies = [account.get_deployment_address(first + offset) for offset in _PROXIES.values()]
    sequence = create(account, first + _SEQUENCE, contracts["OriginatorSequence"], *proxies)
    draft.add("OriginatorSequence", sequence)
    for name, offset in _IMPLEMENTATIONS.items():
        implementation = create(account, first + offset, contracts[name], sequence["address"])
        draft.add(name, {"implementation": implementation})
    for name, offset in _PROXIES.items():
        address = draft.contracts[name]["implementation"]["address"]
        call = _initialization(account, contracts, address, parameters.message_admin)
        proxy = contracts["SequencedLogProxy"]
        draft.add(name, create(account, first + offset, proxy, address, call))
    owner = parameters.registry_owner
    draft.add("NodeRegistry", create(account, first + _REGISTRY, contracts["NodeRegistry"], owner))


def _initialization(
    account: AccountAPI, contracts: Contracts, implementation: str, admin: str
) -> bytes:
    initialize = contracts["GroupMessages"].contract_type.mutable_methods["initialize"]
    ecosystem = account.provider.network.ecosystem
    return bytes(ecosystem.encode_transaction(implementation, initialize, admin).data)


def deploy(
    account: AccountAPI, chain: DeployedChain, parameters: Parameters, record_path: Path
) -> DeploymentRecord:
    """Deploy to a chain, check what stands there, and write the record.

    Raises ConfigurationError before anything is sent if no record can be written, and
    UnfinishedDeployment, which names the file with the addresses, if it goes wrong later.
    """
    header = {
        "format": RECORD_FORMAT,
        "chain_id": chain.chain_id,
        "genesis_hash": chain.genesis_hash,
        "deployer": account.address,
    }
    with drafted(record_path, header) as draft:
        create_all(account, parameters, draft)
        record = draft.parsed()
        check_deployed(chain, record, parameters)
    return record


def check_chain(chain: DeployedChain, parameters: Parameters) -> None:
    """Raise WrongChain if a chain is not the one that the parameters are for."""
    if chain.chain_id != parameters.chain_id:
        raise WrongChain("chain id", parameters.chain_id, chain.chain_id)


def run(
    account: AccountAPI, chain: DeployedChain, parameters_path: Path, record_path: Path
) -> tuple[DeploymentRecord, bool]:
    """Deploy unless the record's deployment stands on this chain; return it, and if it is new.

    A second run changes nothing. A record of another deployment is refused, never overwritten.
    """
    parameters = read_parameters(parameters_path)
    check_chain(chain, parameters)
    if not record_path.exists():
        return deploy(account, chain, parameters, record_path), True
    record = read_deployment_record(record_path)
    check_deployed(chain, record, parameters)
    return record, False


@click.command()
@network_option
@account_option()
@click.option(
    "--parameters",
    "parameters_path",
    required=True,
    type=click.Path(path_type=Path),
    help="Parameter file of the network.",
)
@click.option(
    "--record",
    "record_path",
    required=True,
    type=click.Path(path_type=Path),
    help="Deployment record to write.",
)
def cli(network: str, account: AccountAPI, parameters_path: Path, record_path: Path) -> None:
    """Deploy the contracts and write the deployment record.

    Example: ape run deploy --network http://127.0.0.1:8545 --account test::0 --parameters
    deployments/parameters/local.json --record build/deployment.json
    """
    with connected(network) as provider:
        chain = DeployedChain(provider.web3)
        record, is_new = run(account, chain, parameters_path, record_path)
    click.echo(f"{'deployed' if is_new else 'already deployed'}, checked: {record_path}")
    for contract in record.contracts:
        click.echo(f"  {contract.name:<18} {checksummed(contract)}  block {contract.block}")
