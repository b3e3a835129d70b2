"""Checks a deployment against the chain: addresses, code slots, roles, owner, callers."""

from collections.abc import Iterator, Mapping
from typing import Any

from web3 import Web3
from web3.contract import Contract

from chainkit.errors import ConfigurationError, WrongChain
from scripts._contracts import shipped_abi
from scripts._parameters import Parameters

IMPLEMENTATION_SLOT = 0x360894A13BA1A3210667C828492DB98DCA3E2076CC3735A920A3CA505D382BBC
"""Where ERC-1967 keeps a proxy's implementation: keccak256("eip1967.proxy.implementation") - 1."""

DEFAULT_ADMIN_ROLE = bytes(32)
LOG_NAMES = ("GroupMessages", "IdentityUpdates")

Finding = tuple[str, object, object]
"""Subject, what is expected, what the chain says."""


class DeployedChain:
    """The chain that a script is connected to, seen through the package's ABIs."""

    def __init__(self, web3: Web3) -> None:
        """Remember what makes this chain this chain."""
        self.web3 = web3
        self.chain_id = web3.eth.chain_id
        self.genesis_hash = Web3.to_hex(web3.eth.get_block(0)["hash"])

    def contract(self, name: str, address: str) -> Contract:
        """Return the contract at an address, taken for the named one."""
        checksummed = Web3.to_checksum_address(address)
        return self.web3.eth.contract(address=checksummed, abi=shipped_abi(name))

    def implementation(self, proxy: str) -> str:
        """Return the address of a proxy's implementation, from its ERC-1967 slot."""
        address = Web3.to_checksum_address(proxy)
        word = self.web3.eth.get_storage_at(address, IMPLEMENTATION_SLOT)
        return Web3.to_checksum_address(bytes(word)[-20:])

    def has_code(self, address: str) -> bool:
        """Tell whether there is a contract at an address."""
        return len(self.web3.eth.get_code(Web3.to_checksum_address(address))) > 0


def check_deployed(
    chain: DeployedChain, content: Mapping[str, Any], parameters: Parameters
) -> None:
    """Compare what a record says with the chain.

    Raises WrongChain if it is another chain's record, else ConfigurationError with the first thing
    in which they differ.
    """
    if (content["chain_id"], content["genesis_hash"]) != (chain.chain_id, chain.genesis_hash):
        raise WrongChain("block 0", content["genesis_hash"], chain.genesis_hash)
    for subject, expected, got in _findings(chain, content, parameters):
        if expected != got:
            raise ConfigurationError(subject, expected, got)


def _findings(
    chain: DeployedChain, content: Mapping[str, Any], parameters: Parameters
) -> Iterator[Finding]:
    contracts = content["contracts"]
    for name, entry in contracts.items():
        yield f"{name} at {entry['address']}", "code", _code(chain, entry["address"])
    for name in LOG_NAMES:
        yield from _log_findings(chain, contracts, name, content["deployer"], parameters)
    yield from _sequence_findings(chain, contracts)
    registry = chain.contract("NodeRegistry", contracts["NodeRegistry"]["address"]).functions
    yield "owner of NodeRegistry", parameters.registry_owner, registry.owner().call()


def _code(chain: DeployedChain, address: str) -> str:
    return "code" if chain.has_code(address) else "no code"


def _log_findings(
    chain: DeployedChain,
    contracts: Mapping[str, Any],
    name: str,
    deployer: str,
    parameters: Parameters,
) -> Iterator[Finding]:
    entry = contracts[name]
    functions = chain.contract(name, entry["address"]).functions
    implementation = entry["implementation"]["address"]
    yield f"implementation of {name}", implementation, chain.implementation(entry["address"])
    sequence = contracts["OriginatorSequence"]["address"]
    yield f"sequence of {name}", sequence, functions.originatorSequence().call()
    admin = parameters.message_admin
    is_admin = functions.hasRole(DEFAULT_ADMIN_ROLE, admin).call()
    yield f"{admin} as admin of {name}", True, is_admin
    deployer_is_admin = functions.hasRole(DEFAULT_ADMIN_ROLE, deployer).call()
    yield f"deployer {deployer} as admin of {name}", deployer == admin, deployer_is_admin


def _sequence_findings(chain: DeployedChain, contracts: Mapping[str, Any]) -> Iterator[Finding]:
    address = contracts["OriginatorSequence"]["address"]
    functions = chain.contract("OriginatorSequence", address).functions
    callers = (functions.groupMessages().call(), functions.identityUpdates().call())
    yield (
        "callers of OriginatorSequence",
        tuple(contracts[name]["address"] for name in LOG_NAMES),
        callers,
    )
