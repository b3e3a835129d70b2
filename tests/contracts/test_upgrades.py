import ape
import eth_abi
import pytest
from eth_utils import keccak

IMPLEMENTATION_SLOT = int.from_bytes(keccak(text="eip1967.proxy.implementation")) - 1
IDENTIFIER = bytes(32)


@pytest.fixture
def proxy(deployment):
    return deployment.group_messages.proxy


@pytest.fixture
def successor(project, deployment, deployer):
    return deployer.deploy(project.GroupMessagesSuccessor, deployment.sequence)


def implementation_of(proxy, provider):
    return "0x" + bytes(provider.get_storage(proxy.address, IMPLEMENTATION_SLOT))[-20:].hex()


def test_upgrade__by_admin__emits_the_unindexed_event_before_it_happens(proxy, successor, admin):
    receipt = proxy.upgradeToAndCall(successor, b"", sender=admin)
    authorized, upgraded = receipt.logs
    topic = keccak(text="UpgradeAuthorized(address,address)")
    assert [bytes(value) for value in authorized["topics"]] == [topic]
    expected = eth_abi.encode(("address", "address"), (admin.address, successor.address))
    assert bytes(authorized["data"]) == expected
    assert bytes(upgraded["topics"][0]) == keccak(text="Upgraded(address)")


def test_upgrade__by_admin__keeps_sequence_role_and_pause(
    project, deployment, proxy, successor, admin, publisher, networks
):
    proxy.addMessage(IDENTIFIER, b"before", sender=publisher)
    proxy.pause(sender=admin)
    proxy.upgradeToAndCall(successor, b"", sender=admin)
    upgraded = project.GroupMessagesSuccessor.at(proxy.address)
    assert implementation_of(proxy, networks.provider) == successor.address.lower()
    assert upgraded.version() == 2
    assert upgraded.paused()
    upgraded.unpause(sender=admin)
    upgraded.addMessage(IDENTIFIER, b"after", sender=publisher)
    assert deployment.sequence.last() == 2


def test_upgrade__with_a_call__makes_the_call(proxy, successor, admin):
    proxy.upgradeToAndCall(successor, successor.pause.encode_input(), sender=admin)
    assert proxy.paused()


def test_upgrade__by_anybody_else__reverts(proxy, successor, deployer, stranger, networks):
    before = implementation_of(proxy, networks.provider)
    for caller in (deployer, stranger):
        with ape.reverts(proxy.AccessControlUnauthorizedAccount, account=caller.address):
            proxy.upgradeToAndCall(successor, b"", sender=caller)
    assert implementation_of(proxy, networks.provider) == before


def test_upgrade__to_a_contract_that_cannot_upgrade__reverts(proxy, deployment, admin):
    other_proxy = deployment.identity_updates.proxy
    # Proxy and implementation both declare the error, so Ape offers it under neither's name.
    with ape.reverts() as revert:
        proxy.upgradeToAndCall(other_proxy, b"", sender=admin)
    assert revert.value.name == "ERC1967InvalidImplementation"
    assert revert.value.inputs == {"implementation": other_proxy.address}


def test_upgrade__to_a_contract_without_a_sequence__reverts(proxy, deployment, admin):
    own, none = deployment.sequence.address, "0x" + 40 * "0"
    with ape.reverts(proxy.OriginatorSequenceChanged, current=own, proposed=none):
        proxy.upgradeToAndCall(deployment.sequence, b"", sender=admin)


def test_upgrade__to_another_sequence_with_the_same_callers__reverts(
    project, deployment, contract, deployer, admin, publisher, networks
):
    own = deployment.sequence
    other = deployer.deploy(project.OriginatorSequence, own.groupMessages(), own.identityUpdates())
    successor = deployer.deploy(project.get_contract(contract.name), other)
    before = implementation_of(contract.proxy, networks.provider)
    error = contract.proxy.OriginatorSequenceChanged
    with ape.reverts(error, current=own.address, proposed=other.address):
        contract.proxy.upgradeToAndCall(successor, b"", sender=admin)
    assert implementation_of(contract.proxy, networks.provider) == before
    contract.publish(IDENTIFIER, b"payload", sender=publisher)
    assert (own.last(), other.last()) == (1, 0)


def test_upgrade__of_the_implementation_itself__reverts(deployment, successor, admin):
    implementation = deployment.group_messages.implementation
    with ape.reverts(implementation.UUPSUnauthorizedCallContext):
        implementation.upgradeToAndCall(successor, b"", sender=admin)
