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

from chainkit.errors import ConfigurationError, WrongChain
from scripts._connection import connected, network_option
from scripts._contracts import compile_contracts
from scripts._parameters import Parameters, read_parameters
from scripts._record import check_absent_or_readable, read_record, write_record
from scripts._verification import LOG_NAMES, DeployedChain, check_deployed

Entry = dict[str, Any]
Contracts = Mapping[str, ContractContainer]

# The order of the six transactions, as offsets to the deployer's nonce.
_GROUP_MESSAGES_PROXY = 3
_IDENTITY_UPDATES_PROXY = 4


def create(account: AccountAPI, container: ContractContainer, *arguments: Any) -> Entry:
    """Deploy one contract and return its address, block and transaction."""
    # Not `account.deploy`: on a network given by its URL, that caches types by address on disk,
    # where the next chain with the same addresses would find them.
    receipt = account.call(container(*arguments, sender=account.address))
    return {
        "address": receipt.contract_address,
        "block": receipt.block_number,
        "transaction": receipt.txn_hash,
    }


def create_all(account: AccountAPI, parameters: Parameters) -> dict[str, Entry]:
    """Deploy everything in the one order that the predicted addresses allow."""
    contracts = compile_contracts()
    nonce = account.nonce
    proxies = (
        account.get_deployment_address(nonce + _GROUP_MESSAGES_PROXY),
        account.get_deployment_address(nonce + _IDENTITY_UPDATES_PROXY),
    )
    sequence = create(account, contracts["OriginatorSequence"], *proxies)
    implementations = [create(account, contracts[name], sequence["address"]) for name in LOG_NAMES]
    group_messages, identity_updates = (
        _create_proxy(account, contracts, implementation, parameters.message_admin)
        for implementation in implementations
    )
    _check_prediction(proxies, (group_messages["address"], identity_updates["address"]))
    return {
        "GroupMessages": group_messages,
        "IdentityUpdates": identity_updates,
        "NodeRegistry": create(account, contracts["NodeRegistry"], parameters.registry_owner),
        "OriginatorSequence": sequence,
    }


def _create_proxy(
    account: AccountAPI, contracts: Contracts, implementation: Entry, admin: str
) -> Entry:
    initialize = contracts["GroupMessages"].contract_type.mutable_methods["initialize"]
    ecosystem = account.provider.network.ecosystem
    call = ecosystem.encode_transaction(implementation["address"], initialize, admin).data
    proxy = create(account, contracts["SequencedLogProxy"], implementation["address"], call)
    return proxy | {"implementation": implementation}


def _check_prediction(predicted: tuple[str, str], created: tuple[str, str]) -> None:
    if predicted != created:
        raise ConfigurationError(
            "proxies", " and ".join(predicted), " and ".join(created), "another nonce was used"
        )


def deploy(account: AccountAPI, chain: DeployedChain, parameters: Parameters) -> Entry:
    """Deploy to a chain, check what stands there, and return the content of the record."""
    contracts = create_all(account, parameters)
    content = {
        "format": 1,
        "chain_id": chain.chain_id,
        "genesis_hash": chain.genesis_hash,
        "deployer": account.address,
        "contracts": contracts,
    }
    check_deployed(chain, content, parameters)
    return content


def check_chain(chain: DeployedChain, parameters: Parameters) -> None:
    """Raise WrongChain if a chain is not the one that the parameters are for."""
    if chain.chain_id != parameters.chain_id:
        raise WrongChain("chain id", parameters.chain_id, chain.chain_id)


def run(
    account: AccountAPI, chain: DeployedChain, parameters_path: Path, record_path: Path
) -> tuple[Mapping[str, Any], bool]:
    """Deploy unless the record's deployment stands on this chain; return it, and if it is new.

    A second run changes nothing. A record of another deployment is refused, never overwritten.
    """
    parameters = read_parameters(parameters_path)
    check_chain(chain, parameters)
    check_absent_or_readable(record_path)
    if record_path.exists():
        content = read_record(record_path)
        check_deployed(chain, content, parameters)
        return content, False
    content = deploy(account, chain, parameters)
    write_record(record_path, content)
    return content, True


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
        content, is_new = run(account, chain, parameters_path, record_path)
    click.echo(f"{'deployed' if is_new else 'already deployed'}, checked: {record_path}")
    for name, entry in sorted(content["contracts"].items()):
        click.echo(f"  {name:<18} {entry['address']}  block {entry['block']}")
