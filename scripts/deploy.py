r"""Deploys the contracts to a chain, or goes on with a deployment that was cut short.

    ape run deploy --network http://127.0.0.1:8545 --account test::0 \
        --parameters deployments/parameters/local.json --record build/deployment.json

Each transaction is written down before it is sent, so that a run that was killed anywhere, or whose
endpoint died, is finished by the same command. The hand-over needs no transaction and leaves no
moment in which the deployer could act: `initialize` and the registry's constructor name the
council's accounts at once, and the result on the chain is compared with the package
before there is a record (docs/adr/0009).
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click
from ape.api import AccountAPI
from ape.cli import account_option
from ape.contracts import ContractContainer
from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.chain.sending import (
    Sending,
    SignedTransaction,
    next_nonce,
    transaction_fees,
    wait_for_receipt,
)
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.artifacts import CONTRACTS, creation_code
from chainkit.contracts.comparison import Comparison
from chainkit.contracts.deployment import (
    RECORD_FORMAT,
    DeploymentRecord,
    RecordedParameters,
    read_deployment_record,
)
from chainkit.contracts.parameters import Parameters, read_parameters
from chainkit.contracts.verification import compare_accounts, compare_deployment
from chainkit.errors import ConfigurationError, InconsistentAnswer, WrongChain
from chainkit.signatures import keccak256
from chainkit.text.ether import ether_words
from chainkit.text.hexadecimal import hex0x
from chainkit.types import Receipt
from scripts._connection import connected, network_option
from scripts._contracts import compile_contracts
from scripts._record import EARLIER, Draft, Entry, NonceSpent, drafted
from scripts._steps import Step, deployment_steps


def run(
    account: AccountAPI, endpoint: Endpoint, parameters_path: Path, record_path: Path
) -> tuple[DeploymentRecord, bool]:
    """Deploy unless the record's deployment is on this chain; return it, and whether it is new.

    A second run changes nothing. A record of another deployment is refused, never overwritten.
    """
    parameters = read_parameters(parameters_path)
    chain_id = endpoint.chain_id()
    if chain_id != parameters.chain_id:
        raise WrongChain("chain id", parameters.chain_id, chain_id)
    if not record_path.exists():
        return deploy(account, endpoint, parameters, record_path), True
    record = read_deployment_record(record_path)
    check(endpoint, record, parameters)
    return record, False


def deploy(
    account: AccountAPI, endpoint: Endpoint, parameters: Parameters, record_path: Path
) -> DeploymentRecord:
    """Deploy missing contracts, check all contracts on the chain, and write the record.

    Raises ConfigurationError before anything is sent if the council's accounts are not on this
    chain, the deployer cannot pay, or no record can be written; RefusedRequest if transactions of
    the deployer wait; and UnfinishedDeployment, which names the file of sent transactions, for a
    later failure.
    """
    require_all(compare_accounts(endpoint, parameters, endpoint.head().reference))
    contracts = packaged_contracts()
    header = {
        "format": RECORD_FORMAT,
        "chain_id": parameters.chain_id,
        "genesis_hash": hex0x(endpoint.header(0).hash),
        "deployer": account.address,
        "parameters": RecordedParameters.of(parameters).content(),
    }
    nonce = endpoint.transaction_count(account.address, endpoint.head().reference)
    with drafted(record_path, header, nonce) as draft:
        steps = deployment_steps(account.address, draft.first_nonce, parameters)
        check_means(steps, endpoint, account.address, draft)
        with click.progressbar(steps, label="deploying", file=sys.stderr) as bar:
            for step in bar:
                take(step, account, endpoint, contracts[step.contract], draft)
        for step in steps:  # again, for a reorg may have moved what was mined first
            settle(step, endpoint, draft)
        record = draft.parsed()
        check(endpoint, record, parameters)
    return record


def check(endpoint: Endpoint, record: DeploymentRecord, parameters: Parameters) -> None:
    """Raise ConfigurationError with the first thing in which chain, record and package differ."""
    require_all(compare_deployment(endpoint, record, parameters, endpoint.head().reference))


def require_all(comparisons: Iterable[Comparison]) -> None:
    """Raise ConfigurationError with the first comparison that does not hold."""
    for comparison in comparisons:
        if not comparison.holds:
            raise ConfigurationError(comparison.subject, comparison.expected, comparison.got)


def packaged_contracts() -> Mapping[str, ContractContainer]:
    """Compile the contracts and prove that they are those of the package.

    Raises ConfigurationError where they differ: the deployment could not be verified later.
    """
    contracts = compile_contracts()
    for name in CONTRACTS:
        code = contracts[name].contract_type.deployment_bytecode
        if code is None or code.bytecode != hex0x(creation_code(name)):
            place = "run `make generate`"
            raise ConfigurationError(f"code of {name}", "the package's", "another", place)
    return contracts


def check_means(steps: Sequence[Step], endpoint: Endpoint, deployer: str, draft: Draft) -> None:
    """Refuse to begin, or continue, a deployment that could not be finished; nothing is sent yet.

    Raises RefusedRequest where transactions of the deployer wait, so that its nonces are not free
    (unless these may be this deployment's own), or a block's gas does not suffice for a contract,
    and ConfigurationError where the deployer cannot pay.
    """
    if not draft.was_begun:
        next_nonce(endpoint, deployer)
    missing = [step for step in steps if not transactions_of(draft.entry(*step.place))]
    head = endpoint.head().reference
    price = endpoint.next_base_fee(head) + endpoint.priority_fee()
    gas = sum(estimate_gas(endpoint, None, step.trial_code, deployer, head) for step in missing)
    needed, balance = gas * price, endpoint.balance(deployer, head)
    if balance < needed:
        expected = f"{ether_words(needed)} for the gas of {len(missing)} contracts"
        raise ConfigurationError(f"balance of {deployer}", expected, ether_words(balance))


def take(
    step: Step, account: AccountAPI, endpoint: Endpoint, container: ContractContainer, draft: Draft
) -> None:
    """Have one contract on the chain: by a transaction that the draft knows, or by a new one."""
    sent = transactions_of(draft.entry(*step.place))
    known = known_among(sent, endpoint)
    if known is not None:
        receipt = wait_for_receipt(endpoint, bytes.fromhex(known[2:]))
    else:
        signed = sign(step, account, endpoint, container, bool(sent))
        entry = {"address": step.address, "transaction": hex0x(signed.hash), EARLIER: sent}
        receipt = Sending(endpoint, announce=lambda _: draft.add(step.place, entry)).send(signed)
    draft.add(step.place, {"block": block_of(receipt)})


def settle(step: Step, endpoint: Endpoint, draft: Draft) -> None:
    """Record the transaction that created a contract, and the contract's place.

    Raises InconsistentAnswer where no such transaction is on the chain any more.
    """
    sent = transactions_of(draft.entry(*step.place))
    known = known_among(sent, endpoint)
    if known is None:
        raise InconsistentAnswer(f"transaction of {step.name}", "one on the chain", "none", sent[0])
    receipt = wait_for_receipt(endpoint, bytes.fromhex(known[2:]))
    draft.settle(step.place, known, block_of(receipt))


def transactions_of(entry: Entry) -> list[str]:
    """Return the hashes that were sent for a contract, the newest first."""
    newest = [entry["transaction"]] if "transaction" in entry else []
    return newest + [each for each in entry.get(EARLIER, []) if each not in newest]


def known_among(sent: Sequence[str], endpoint: Endpoint) -> str | None:
    """Return the first transaction that is mined or waits; an unclear answer raises an error."""
    for transaction in sent:
        hash_ = bytes.fromhex(transaction[2:])
        if endpoint.receipt(hash_) or endpoint.transaction(hash_):
            return transaction
    return None


def block_of(receipt: Receipt) -> int:
    """Return the height of a transaction. Raises NonceSpent if it reverted."""
    if not receipt.succeeded:
        got = f"a revert in block {receipt.block.reference}"
        subject = f"transaction {hex0x(receipt.transaction_hash)}"
        raise NonceSpent(subject, "a contract deployed", got)
    return receipt.block.number


def sign(
    step: Step,
    account: AccountAPI,
    endpoint: Endpoint,
    container: ContractContainer,
    was_sent: bool,
) -> SignedTransaction:
    """Sign the transaction of one step, with its nonce or not at all.

    Raises NonceSpent where the account has used that nonce for something else, and
    InconsistentAnswer where the account has not reached the nonce yet, or used it for this step and
    the endpoint does not have the transaction.
    """
    count = endpoint.transaction_count(account.address, endpoint.head().reference)
    if was_sent and count > step.nonce:
        address = bytes.fromhex(step.address[2:])
        if endpoint.code(address, endpoint.head().reference):
            subject = f"transaction of {step.name}"
            expected = f"one, as there is a contract at {step.address}"
            raise InconsistentAnswer(subject, expected, f"none at {endpoint.name}")
    if count < step.nonce:
        # A reorg took an earlier step back, or the endpoint lags: going on later helps.
        subject = f"transactions of {account.address}"
        raise InconsistentAnswer(subject, step.nonce, count, step.name)
    if count > step.nonce:
        raise NonceSpent(f"transactions of {account.address}", step.nonce, count, step.name)
    # Not `account.deploy`: on a network given by its URL, that caches types by address on disk,
    # where the next chain with the same addresses would find them.
    tip, maximum = transaction_fees(endpoint)
    # Ape's own fees are the newest base fee's: geth estimates no gas with such fees while the base
    # fee falls.
    fees = {"max_fee": maximum, "max_priority_fee": tip}
    prepared = account.prepare_transaction(
        container(*step.arguments, sender=account.address, nonce=step.nonce, **fees)
    )
    signed = account.sign_transaction(prepared)
    if signed is None:
        raise ConfigurationError(f"signature of {account.address}", "one", "none", step.name)
    raw = bytes(signed.serialize_transaction())
    return SignedTransaction(raw, keccak256(raw))


def tell_powers(parameters: Parameters, record: DeploymentRecord) -> None:
    """Print the holders of the contracts, which were checked on the chain."""
    click.echo(f"administrator of both logs: {to_checksum_address(parameters.message_admin)}")
    click.echo(f"owner of NodeRegistry: {to_checksum_address(parameters.registry_owner)}")
    held = record.deployer in (parameters.message_admin, parameters.registry_owner)
    words = "is the council's own account" if held else "holds nothing"
    click.echo(f"the deployer {to_checksum_address(record.deployer)} {words}")


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
    """Deploy the contracts, or finish deploying them, and write the deployment record.

    Example: ape run deploy --network http://127.0.0.1:8545 --account test::0 --parameters
    deployments/parameters/local.json --record build/deployment.json
    """
    with connected(network) as provider:
        endpoint = Endpoint.connect(provider.http_uri)
        record, is_new = run(account, endpoint, parameters_path, record_path)
    click.echo(f"{'deployed' if is_new else 'already deployed'}, checked: {record_path}")
    for contract in record.contracts:
        address = to_checksum_address(contract.address)
        click.echo(f"  {contract.name:<18} {address}  block {contract.block}")
    tell_powers(read_parameters(parameters_path), record)
