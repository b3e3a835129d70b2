import ape
import eth_abi
import pytest
from eth_utils import keccak

from .conftest import PAYLOAD_BOUNDS

IMPLEMENTATION_SLOT = int.from_bytes(keccak(text="eip1967.proxy.implementation")) - 1
IDENTIFIER = bytes(32)
ZERO = "0x0000000000000000000000000000000000000000"
NO_KIND = 2**256 - 1


@pytest.fixture
def proxy(contract):
    return contract.proxy


@pytest.fixture
def successor(test_contracts, contract, deployment, deployer):
    return deployer.deploy(test_contracts[f"{contract.name}Successor"], deployment.sequence)


@pytest.fixture
def imitation(test_contracts, contract, deployment, deployer):
    """No implementation at all, but it answers everything that an upgrade asks."""
    answering = deployer.deploy(test_contracts["AnsweringContract"])
    for signature, word in (
        ("originatorSequence()", int(deployment.sequence.address, 16)),
        ("topicKind()", contract.topic_kind),
        ("proxiableUUID()", IMPLEMENTATION_SLOT),
    ):
        answer(answering, signature, word.to_bytes(32), deployer)
    return answering


def answer(answering, signature, data, deployer):
    answering.setAnswer(keccak(text=signature)[:4], data, sender=deployer)


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


def test_upgrade__by_admin__keeps_sequence_roles_bounds_and_pause(
    deployment, contract, successor, admin, admin_role, stranger, publisher, networks
):
    proxy = contract.proxy
    contract.publish(IDENTIFIER, b"before", sender=publisher)
    proxy.grantRole(admin_role, stranger, sender=admin)
    proxy.pause(sender=admin)
    proxy.upgradeToAndCall(successor, b"", sender=admin)
    upgraded = ape.Contract(proxy.address, contract_type=successor.contract_type)
    assert implementation_of(proxy, networks.provider) == successor.address.lower()
    assert upgraded.version() == 2
    assert upgraded.paused()
    bounds = upgraded.payloadBounds()
    assert (bounds.minimum, bounds.maximum) == PAYLOAD_BOUNDS
    assert upgraded.getRoleMembers(admin_role) == [admin, stranger]
    assert upgraded.topicKind() == contract.topic_kind
    assert upgraded.originatorSequence() == deployment.sequence
    upgraded.unpause(sender=stranger)
    contract.publish(IDENTIFIER, b"after", sender=publisher)
    assert upgraded.lastSequenceId() == 2


def test_upgrade__to_the_same_implementation_again__changes_nothing(contract, admin, publisher):
    contract.proxy.upgradeToAndCall(contract.implementation, b"", sender=admin)
    contract.publish(IDENTIFIER, b"payload", sender=publisher)
    assert contract.proxy.lastSequenceId() == 1


def test_upgrade__with_a_call__makes_the_call(proxy, successor, admin):
    proxy.upgradeToAndCall(successor, successor.pause.encode_input(), sender=admin)
    assert proxy.paused()


def test_upgrade__with_a_call_to_initialize__reverts(proxy, successor, admin, stranger, networks):
    before = implementation_of(proxy, networks.provider)
    call = successor.initialize.encode_input(stranger, 0, 1)
    with ape.reverts(proxy.InvalidInitialization):
        proxy.upgradeToAndCall(successor, call, sender=admin)
    assert implementation_of(proxy, networks.provider) == before


def test_upgrade__with_a_call_of_no_function__reverts(proxy, successor, admin):
    with ape.reverts() as revert:
        proxy.upgradeToAndCall(successor, b"none", sender=admin)
    # Proxy and implementation both declare the error, so Ape offers it under neither's name.
    assert revert.value.name == "FailedCall"


def test_upgrade__with_ether_and_no_call__reverts(proxy, successor, admin):
    with ape.reverts() as revert:
        proxy.upgradeToAndCall(successor, b"", sender=admin, value=1)
    assert revert.value.name == "ERC1967NonPayable"


def test_upgrade__by_anybody_else__reverts(
    proxy, successor, admin_role, deployer, stranger, publisher, networks
):
    before = implementation_of(proxy, networks.provider)
    error = proxy.AccessControlUnauthorizedAccount
    for caller in (deployer, stranger, publisher):
        with ape.reverts(error, account=caller.address, neededRole=admin_role):
            proxy.upgradeToAndCall(successor, b"", sender=caller)
    assert implementation_of(proxy, networks.provider) == before


def test_upgrade__to_a_proxy_of_the_same_contract__reverts(
    project, contract, deployer, admin, networks
):
    call = contract.implementation.initialize.encode_input(admin, 0, 1)
    other = deployer.deploy(project.SequencedLogProxy, contract.implementation, call)
    with ape.reverts() as revert:
        contract.proxy.upgradeToAndCall(other, b"", sender=admin)
    assert revert.value.name == "ERC1967InvalidImplementation"
    assert revert.value.inputs == {"implementation": other.address}


def test_upgrade__to_the_sibling_s_implementation__reverts(deployment, admin, networks):
    group, identity = deployment.group_messages, deployment.identity_updates
    for own, sibling in ((group, identity), (identity, group)):
        before = implementation_of(own.proxy, networks.provider)
        error = own.proxy.TopicKindChanged
        with ape.reverts(error, current=own.topic_kind, proposed=sibling.topic_kind):
            own.proxy.upgradeToAndCall(sibling.implementation, b"", sender=admin)
        assert implementation_of(own.proxy, networks.provider) == before


def test_upgrade__to_an_account_or_a_contract_without_a_sequence__reverts(
    proxy, deployment, admin, stranger
):
    own = deployment.sequence.address
    for target in (ZERO, stranger, deployment.sequence):
        with ape.reverts(proxy.OriginatorSequenceChanged, current=own, proposed=ZERO):
            proxy.upgradeToAndCall(target, b"", sender=admin)


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


def test_upgrade__to_one_whose_sequence_is_no_single_address__reverts(
    proxy, deployment, imitation, admin, deployer
):
    own = int(deployment.sequence.address, 16)
    above_an_address = (own + 2**160).to_bytes(32)
    for data in (above_an_address, own.to_bytes(20), own.to_bytes(32) + bytes(32)):
        answer(imitation, "originatorSequence()", data, deployer)
        with ape.reverts(proxy.OriginatorSequenceChanged, proposed=ZERO):
            proxy.upgradeToAndCall(imitation, b"", sender=admin)


def test_upgrade__to_one_without_a_topic_kind__reverts(contract, proxy, imitation, admin, deployer):
    for data in (b"", contract.topic_kind.to_bytes(1), bytes(64)):
        answer(imitation, "topicKind()", data, deployer)
        error = proxy.TopicKindChanged
        with ape.reverts(error, current=contract.topic_kind, proposed=NO_KIND):
            proxy.upgradeToAndCall(imitation, b"", sender=admin)


def test_upgrade__to_one_that_keeps_its_implementation_elsewhere__reverts(
    proxy, imitation, admin, deployer
):
    answer(imitation, "proxiableUUID()", b"\x07" * 32, deployer)
    with ape.reverts(proxy.UUPSUnsupportedProxiableUUID, slot=b"\x07" * 32):
        proxy.upgradeToAndCall(imitation, b"", sender=admin)


def test_upgrade__to_one_that_merely_answers_as_expected__is_accepted(
    contract, imitation, admin, publisher, networks
):
    contract.proxy.upgradeToAndCall(imitation, b"", sender=admin)
    assert implementation_of(contract.proxy, networks.provider) == imitation.address.lower()
    with ape.reverts(imitation.Unanswered):
        contract.publish(IDENTIFIER, b"payload", sender=publisher)


def test_upgrade__of_the_implementation_itself__reverts(contract, successor, admin):
    with ape.reverts(contract.implementation.UUPSUnauthorizedCallContext):
        contract.implementation.upgradeToAndCall(successor, b"", sender=admin)


def test_proxiable_uuid__of_the_implementation_alone__is_the_implementation_slot(contract):
    uuid = contract.implementation.proxiableUUID()
    assert int.from_bytes(uuid) == IMPLEMENTATION_SLOT
    with ape.reverts(contract.proxy.UUPSUnauthorizedCallContext):
        contract.proxy.proxiableUUID()
    assert contract.proxy.UPGRADE_INTERFACE_VERSION() == "5.0.0"
