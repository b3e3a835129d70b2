"""Through Ape's own pytest plugin: `ape test tests/contracts` (each test in a snapshot of its own).

Ape would look for a free port by chance and keep anvil's output in a file that a second run
deletes. So anvil is started here, on a port that the system gives, and Ape is pointed at it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ape
import pytest
from ape.api import AccountAPI
from ape.contracts import ContractInstance
from coincurve import PrivateKey

from localnet.anvil import Anvil

_anvil = pytest.StashKey[Anvil]()

# An account is the same on any state of the chain: Ape need not rebase its snapshots for it.
stateless = ape.fixture(scope="session", chain_isolation=False)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_anvil] = Anvil("--hardfork", "cancun")
    os.environ["APE_FOUNDRY_HOST"] = config.stash[_anvil].url


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_anvil].stop()


@dataclass(frozen=True)
class PayloadContract:
    """GroupMessages or IdentityUpdates behind its proxy, spoken to by what they have in common."""

    name: str
    proxy: ContractInstance
    implementation: ContractInstance
    publish: Callable[..., Any]
    event: str
    """The event's signature, as XIP-49 §2.2 writes it."""


@dataclass(frozen=True)
class Deployment:
    """Both payload contracts and the sequence they share."""

    sequence: ContractInstance
    group_messages: PayloadContract
    identity_updates: PayloadContract


@stateless
def deployer(accounts: Any) -> AccountAPI:
    return accounts[0]


@stateless
def admin(accounts: Any) -> AccountAPI:
    return accounts[1]


@stateless
def owner(accounts: Any) -> AccountAPI:
    return accounts[2]


@stateless
def operator(accounts: Any) -> AccountAPI:
    return accounts[3]


@stateless
def stranger(accounts: Any) -> AccountAPI:
    return accounts[4]


@stateless
def publisher(accounts: Any) -> AccountAPI:
    return accounts[5]


@pytest.fixture(scope="module")
def deployment(project: Any, deployer: AccountAPI, admin: AccountAPI) -> Deployment:
    nonce = deployer.nonce
    proxies = [deployer.get_deployment_address(nonce + offset) for offset in (3, 4)]
    sequence = deployer.deploy(project.OriginatorSequence, *proxies)
    implementations = [
        deployer.deploy(container, sequence)
        for container in (project.GroupMessages, project.IdentityUpdates)
    ]
    for implementation in implementations:
        call = implementation.initialize.encode_input(admin)
        deployer.deploy(project.SequencedLogProxy, implementation, call)
    group_messages = project.GroupMessages.at(proxies[0])
    identity_updates = project.IdentityUpdates.at(proxies[1])
    return Deployment(
        sequence,
        PayloadContract(
            "GroupMessages",
            group_messages,
            implementations[0],
            group_messages.addMessage,
            "MessageSent(bytes32,bytes,uint64)",
        ),
        PayloadContract(
            "IdentityUpdates",
            identity_updates,
            implementations[1],
            identity_updates.addIdentityUpdate,
            "IdentityUpdateCreated(bytes32,bytes,uint64)",
        ),
    )


@pytest.fixture(params=["group_messages", "identity_updates"])
def contract(request: pytest.FixtureRequest, deployment: Deployment) -> PayloadContract:
    found: PayloadContract = getattr(deployment, request.param)
    return found


@pytest.fixture(scope="module")
def registry(project: Any, deployer: AccountAPI, owner: AccountAPI) -> ContractInstance:
    return deployer.deploy(project.NodeRegistry, owner)


@stateless
def public_key() -> Callable[[int], bytes]:
    """Returns the public key of a small secret: 65 bytes, 0x04, X, Y."""

    def of(secret: int) -> bytes:
        return PrivateKey(secret.to_bytes(32)).public_key.format(compressed=False)

    return of


@pytest.fixture(scope="module")
def three_nodes(
    project: Any,
    deployer: AccountAPI,
    owner: AccountAPI,
    operator: AccountAPI,
    public_key: Callable[[int], bytes],
) -> ContractInstance:
    """A registry of its own with nodes 100, 200 and 300, all held by the operator."""
    registry = deployer.deploy(project.NodeRegistry, owner)
    for secret in (1, 2, 3):
        registry.addNode(operator, public_key(secret), f"http://node{secret}.test", sender=owner)
    return registry
