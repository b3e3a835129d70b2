"""Checks a deployment against the chain: addresses, code slots, roles, owner, callers."""

from collections.abc import Iterator

from web3 import Web3
from web3.contract import Contract

from chainkit.deployment import DeployedContract, DeploymentRecord
from chainkit.errors import ConfigurationError, WrongChain
from scripts._contracts import shipped_abi
from scripts._parameters import Parameters

IMPLEMENTATION_SLOT = 0x360894A13BA1A3210667C828492DB98DCA3E2076CC3735A920A3CA505D382BBC
"""Where ERC-1967 keeps a proxy's implementation: keccak256("eip1967.proxy.implementation") - 1."""

DEFAULT_ADMIN_ROLE = bytes(32)

Finding = tuple[str, object, object]
"""Subject, what is expected, what the chain says."""


class DeployedChain:
    """The chain that a script is connected to, seen through the package's ABIs."""

    def __init__(self, web3: Web3) -> None:
        """Remember what makes this chain this chain."""
        self.web3 = web3
        self.chain_id = web3.eth.chain_id
        self.genesis_hash = Web3.to_hex(web3.eth.get_block(0)["hash"])

    def contract(self, name: str, address: bytes) -> Contract:
        """Return the contract at an address, taken for the named one."""
        checksummed = Web3.to_checksum_address(address)
        return self.web3.eth.contract(address=checksummed, abi=shipped_abi(name))

    def implementation(self, proxy: bytes) -> str:
        """Return the checksummed address of a proxy's implementation, from its ERC-1967 slot."""
        address = Web3.to_checksum_address(proxy)
        word = self.web3.eth.get_storage_at(address, IMPLEMENTATION_SLOT)
        return Web3.to_checksum_address(bytes(word)[-20:])

    def has_code(self, address: bytes) -> bool:
        """Tell whether there is a contract at an address."""
        return len(self.web3.eth.get_code(Web3.to_checksum_address(address))) > 0


def check_deployed(chain: DeployedChain, record: DeploymentRecord, parameters: Parameters) -> None:
    """Compare what a record says with the chain.

    Raises WrongChain if it is another chain's record, else ConfigurationError with the first thing
    in which they differ.
    """
    if record.chain_id != chain.chain_id:
        raise WrongChain("chain id", record.chain_id, chain.chain_id)
    genesis_hash = Web3.to_hex(record.genesis_hash)
    if genesis_hash != chain.genesis_hash:
        raise WrongChain("block 0", genesis_hash, chain.genesis_hash)
    for subject, expected, got in _findings(chain, record, parameters):
        if expected != got:
            raise ConfigurationError(subject, expected, got)


def checksummed(contract: DeployedContract) -> str:
    """Return a contract's address as a person reads it."""
    return Web3.to_checksum_address(contract.address)


def _findings(
    chain: DeployedChain, record: DeploymentRecord, parameters: Parameters
) -> Iterator[Finding]:
    for contract in record.contracts:
        code = "code" if chain.has_code(contract.address) else "no code"
        yield f"{contract.name} at {checksummed(contract)}", "code", code
    for proxy in (record.group_messages, record.identity_updates):
        yield from _log_findings(chain, record, proxy, parameters)
    yield from _sequence_findings(chain, record)
    registry = chain.contract("NodeRegistry", record.node_registry.address).functions
    yield "owner of NodeRegistry", parameters.registry_owner, registry.owner().call()


def _log_findings(
    chain: DeployedChain, record: DeploymentRecord, proxy: DeployedContract, parameters: Parameters
) -> Iterator[Finding]:
    name = proxy.name
    functions = chain.contract(name, proxy.address).functions
    implementation = proxy.implementation and checksummed(proxy.implementation)
    yield f"implementation of {name}", implementation, chain.implementation(proxy.address)
    sequence = checksummed(record.originator_sequence)
    yield f"sequence of {name}", sequence, functions.originatorSequence().call()
    admin, deployer = parameters.message_admin, Web3.to_checksum_address(record.deployer)
    is_admin = functions.hasRole(DEFAULT_ADMIN_ROLE, admin).call()
    yield f"{admin} as admin of {name}", True, is_admin
    deployer_is_admin = functions.hasRole(DEFAULT_ADMIN_ROLE, deployer).call()
    yield f"deployer {deployer} as admin of {name}", deployer == admin, deployer_is_admin


def _sequence_findings(chain: DeployedChain, record: DeploymentRecord) -> Iterator[Finding]:
    sequence = chain.contract("OriginatorSequence", record.originator_sequence.address).functions
    callers = (sequence.groupMessages().call(), sequence.identityUpdates().call())
    expected = (checksummed(record.group_messages), checksummed(record.identity_updates))
    yield "callers of OriginatorSequence", expected, callers
