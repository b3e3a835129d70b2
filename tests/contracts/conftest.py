"""Through Ape's own pytest plugin: `ape test tests/contracts` (each test in a snapshot of its own).

Ape would look for a free port by chance and keep anvil's output in a file that a second run
deletes. So anvil is started here, on a port that the system gives, and Ape is pointed at it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ape
import eth_abi
import pytest
from ape.api import AccountAPI, ReceiptAPI
from ape.contracts import ContractContainer, ContractInstance
from coincurve import PrivateKey
from eth_utils import keccak, to_checksum_address
from ethpm_types import ContractType

from chainkit.chain import Endpoint
from chainkit.text.hexadecimal import hex0x
from localnet.anvil import Anvil
from scripts import deploy as script
from tools.solidity import compiled_contracts

PAYLOAD_BOUNDS = (2, 60_000)
"""The least and the greatest payload of the contracts under test, in bytes: both cheap to reach."""

LONGEST = ("test_deploy.py", "test_deploy_failures.py", "test_stateful_registry.py")
"""Two workers begin with these: begun last, they would leave one worker idle."""

_anvil = pytest.StashKey[Anvil]()

# An account is the same on any state of the chain: Ape need not rebase its snapshots for it.
stateless = ape.fixture(scope="session", chain_isolation=False)


def pytest_configure(config: pytest.Config) -> None:
    # Anvil's limit on a request is below the greatest payload, written as hexadecimal digits.
    config.stash[_anvil] = Anvil("--hardfork", "cancun", "--no-request-size-limit")
    os.environ["APE_FOUNDRY_HOST"] = config.stash[_anvil].url


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_anvil].stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)


@dataclass(frozen=True)
class PayloadContract:
    """GroupMessages or IdentityUpdates behind its proxy, spoken to by what they have in common."""

    name: str
    proxy: ContractInstance
    implementation: ContractInstance
    publish: Callable[..., Any]
    event: str
    """The event's signature, as XIP-49 §2.2 writes it."""
    topic_kind: int


@dataclass(frozen=True)
class Deployment:
    """Both payload contracts and the sequence they share."""

    sequence: ContractInstance
    group_messages: PayloadContract
    identity_updates: PayloadContract


def ids(nodes: Sequence[Any]) -> list[int]:
    """The ids of a listing's entries, in its order."""
    return [node.nodeId for node in nodes]


def key_address(key: bytes) -> str:
    """The address of an uncompressed public key, with its checksum."""
    return to_checksum_address(keccak(key[1:])[-20:])


def node_updated(receipt: ReceiptAPI) -> tuple[int, tuple[bytes, str, bool]]:
    """The arguments of the receipt's last log, after checking that it is an unindexed NodeUpdated.

    Ape does not compare an event's nested values.
    """
    log = receipt.logs[-1]
    topic = keccak(text="NodeUpdated(uint256,(bytes,string,bool))")
    assert [bytes(value) for value in log["topics"]] == [topic]
    return eth_abi.decode(("uint256", "(bytes,string,bool)"), bytes(log["data"]))


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
        call = implementation.initialize.encode_input(admin, *PAYLOAD_BOUNDS)
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
            0,
        ),
        PayloadContract(
            "IdentityUpdates",
            identity_updates,
            implementations[1],
            identity_updates.addIdentityUpdate,
            "IdentityUpdateCreated(bytes32,bytes,uint64)",
            2,
        ),
    )


@pytest.fixture(params=["group_messages", "identity_updates"])
def contract(request: pytest.FixtureRequest, deployment: Deployment) -> PayloadContract:
    found: PayloadContract = getattr(deployment, request.param)
    return found


@stateless
def admin_role() -> bytes:
    """AccessControl's DEFAULT_ADMIN_ROLE."""
    return bytes(32)


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


@pytest.fixture
def endpoint(networks: Any) -> Endpoint:
    return Endpoint.connect(networks.provider.http_uri)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Where a deployment record is to be."""
    return tmp_path / "record.json"


@stateless
def test_contracts() -> Mapping[str, ContractContainer]:
    """The contracts of tests/solidity by name."""
    return {
        name: ContractContainer(
            ContractType(
                contractName=name,
                sourceId=each.source,
                abi=each.abi,
                deploymentBytecode={"bytecode": hex0x(each.creation_code)},
                runtimeBytecode={"bytecode": hex0x(each.runtime_code)},
            )
        )
        for name, each in compiled_contracts("tests/solidity").items()
    }


@stateless
def packaged() -> Any:
    """The contracts as the deploy script compiles them."""
    return script.packaged_contracts()
