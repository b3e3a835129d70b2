import os

import ape
import eth_abi
import pytest
from eth_utils import keccak

IDENTIFIER = bytes(range(32))
PAYLOAD = b"a serialized ClientEnvelope"


def only_log(receipt):
    (log,) = receipt.logs
    return log


@pytest.mark.parametrize("payload", [PAYLOAD, b"", os.urandom(50_000)], ids=len)
def test_publish__any_payload__emits_the_unindexed_event(contract, publisher, payload):
    log = only_log(contract.publish(IDENTIFIER, payload, sender=publisher))
    assert log["address"] == contract.proxy.address
    assert [bytes(topic) for topic in log["topics"]] == [keccak(text=contract.event)]
    expected = eth_abi.encode(("bytes32", "bytes", "uint64"), (IDENTIFIER, payload, 1))
    assert bytes(log["data"]) == expected


def test_publish__to_both_contracts__shares_one_sequence_without_gap(deployment, publisher):
    group, identity = deployment.group_messages, deployment.identity_updates
    ids = []
    for contract in (group, identity, identity, group, identity):
        log = only_log(contract.publish(IDENTIFIER, PAYLOAD, sender=publisher))
        ids.append(eth_abi.decode(("bytes32", "bytes", "uint64"), bytes(log["data"]))[2])
    assert ids == [1, 2, 3, 4, 5]
    assert deployment.sequence.last() == 5


def test_next__called_beside_the_proxies__reverts(deployment, publisher, admin):
    implementations = (
        deployment.group_messages.implementation,
        deployment.identity_updates.implementation,
    )
    for caller in (publisher, admin):
        with ape.reverts(deployment.sequence.UnauthorizedSequenceCaller, caller=caller.address):
            deployment.sequence.next(sender=caller)
    publishing = ("addMessage", "addIdentityUpdate")
    for implementation, publish in zip(implementations, publishing, strict=True):
        error = deployment.sequence.UnauthorizedSequenceCaller
        with ape.reverts(error, caller=implementation.address):
            getattr(implementation, publish)(IDENTIFIER, PAYLOAD, sender=publisher)
    assert deployment.sequence.last() == 0


def test_publish__while_paused__reverts_and_takes_no_id(contract, deployment, admin, publisher):
    contract.proxy.pause(sender=admin)
    with ape.reverts(contract.proxy.EnforcedPause):
        contract.publish(IDENTIFIER, PAYLOAD, sender=publisher)
    assert deployment.sequence.last() == 0


def test_publish__while_the_other_contract_is_paused__goes_on(deployment, admin, publisher):
    deployment.group_messages.proxy.pause(sender=admin)
    deployment.identity_updates.publish(IDENTIFIER, PAYLOAD, sender=publisher)
    assert deployment.sequence.last() == 1


def test_unpause__after_a_pause__continues_the_sequence(contract, deployment, admin, publisher):
    contract.publish(IDENTIFIER, PAYLOAD, sender=publisher)
    contract.proxy.pause(sender=admin)
    contract.proxy.unpause(sender=admin)
    contract.publish(IDENTIFIER, PAYLOAD, sender=publisher)
    assert deployment.sequence.last() == 2


def test_pause__by_admin__emits_who_paused(contract, admin):
    receipt = contract.proxy.pause(sender=admin)
    assert receipt.events == [contract.proxy.Paused(account=admin)]
    assert contract.proxy.paused()
    receipt = contract.proxy.unpause(sender=admin)
    assert receipt.events == [contract.proxy.Unpaused(account=admin)]
    assert not contract.proxy.paused()


def test_pause__twice__reverts(contract, admin):
    with ape.reverts(contract.proxy.ExpectedPause):
        contract.proxy.unpause(sender=admin)
    contract.proxy.pause(sender=admin)
    with ape.reverts(contract.proxy.EnforcedPause):
        contract.proxy.pause(sender=admin)


@pytest.mark.parametrize("function", ["pause", "unpause"])
def test_pausing__by_anybody_else__reverts(contract, deployer, stranger, function):
    role = contract.proxy.DEFAULT_ADMIN_ROLE()
    for caller in (deployer, stranger):
        error = contract.proxy.AccessControlUnauthorizedAccount
        with ape.reverts(error, account=caller.address, neededRole=role):
            getattr(contract.proxy, function)(sender=caller)


def test_roles__after_deployment__are_the_admin_alone(contract, admin, deployer):
    role = contract.proxy.DEFAULT_ADMIN_ROLE()
    assert contract.proxy.hasRole(role, admin)
    assert not contract.proxy.hasRole(role, deployer)
    assert contract.proxy.getRoleAdmin(role) == role


def test_grant_role__by_admin__lets_the_account_act_until_revoked(contract, admin, stranger):
    role = contract.proxy.DEFAULT_ADMIN_ROLE()
    granted = contract.proxy.grantRole(role, stranger, sender=admin)
    expected = contract.proxy.RoleGranted(role=role, account=stranger, sender=admin)
    assert granted.events == [expected]
    contract.proxy.pause(sender=stranger)
    contract.proxy.revokeRole(role, stranger, sender=admin)
    with ape.reverts(contract.proxy.AccessControlUnauthorizedAccount):
        contract.proxy.unpause(sender=stranger)


def test_grant_role__by_a_stranger__reverts(contract, stranger):
    role = contract.proxy.DEFAULT_ADMIN_ROLE()
    for function in (contract.proxy.grantRole, contract.proxy.revokeRole):
        error = contract.proxy.AccessControlUnauthorizedAccount
        with ape.reverts(error, account=stranger.address, neededRole=role):
            function(role, stranger, sender=stranger)


def test_renounce_role__by_its_holder__ends_it(contract, admin, stranger):
    role = contract.proxy.DEFAULT_ADMIN_ROLE()
    with ape.reverts(contract.proxy.AccessControlBadConfirmation):
        contract.proxy.renounceRole(role, stranger, sender=admin)
    contract.proxy.renounceRole(role, admin, sender=admin)
    assert not contract.proxy.hasRole(role, admin)


def test_initialize__again_or_on_the_implementation__reverts(contract, admin, stranger):
    for instance in (contract.proxy, contract.implementation):
        with ape.reverts(instance.InvalidInitialization):
            instance.initialize(stranger, sender=admin)


def test_construct_proxy__with_zero_admin__reverts(project, contract, deployer):
    zero = "0x0000000000000000000000000000000000000000"
    call = contract.implementation.initialize.encode_input(zero)
    with ape.reverts(contract.proxy.InvalidAdmin, admin=zero):
        deployer.deploy(project.SequencedLogProxy, contract.implementation, call)


def test_construct_implementation__with_a_sequence_without_code__reverts(
    project, contract, deployer, stranger
):
    container = project.get_contract(contract.name)
    error = container.InvalidOriginatorSequence
    with ape.reverts(error, originatorSequence=stranger.address):
        deployer.deploy(container, stranger)


def test_originator_sequence__of_both_contracts__is_the_shared_one(contract, deployment):
    assert contract.proxy.originatorSequence() == deployment.sequence
