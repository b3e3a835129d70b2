import ape
import pytest

from .conftest import PAYLOAD_BOUNDS

IDENTIFIER = bytes(32)
PAYLOAD = b"payload"
OTHER_ROLE = b"\x07" * 32
ZERO = "0x0000000000000000000000000000000000000000"


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


def test_publish__while_paused__reverts_and_takes_no_id(contract, deployment, admin, publisher):
    contract.proxy.pause(sender=admin)
    for payload in (PAYLOAD, b""):
        with ape.reverts(contract.proxy.EnforcedPause):
            contract.publish(IDENTIFIER, payload, sender=publisher)
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


def test_administration__while_paused__goes_on(
    test_contracts, contract, deployment, admin, admin_role
):
    proxy, successor = contract.proxy, ape.accounts.test_accounts[6]
    proxy.pause(sender=admin)
    proxy.setPayloadBounds(0, 9, sender=admin)
    proxy.grantRole(admin_role, successor, sender=admin)
    proxy.revokeRole(admin_role, admin, sender=successor)
    container = test_contracts[f"{contract.name}Successor"]
    implementation = successor.deploy(container, deployment.sequence)
    proxy.upgradeToAndCall(implementation, b"", sender=successor)
    assert proxy.paused()
    assert proxy.payloadBounds().maximum == 9
    assert proxy.getRoleMembers(admin_role) == [successor]
    assert proxy.lastSequenceId() == 0


@pytest.mark.parametrize("function", ["pause", "unpause"])
def test_pausing__by_anybody_else__reverts(contract, admin_role, deployer, stranger, function):
    for caller in (deployer, stranger):
        error = contract.proxy.AccessControlUnauthorizedAccount
        with ape.reverts(error, account=caller.address, neededRole=admin_role):
            getattr(contract.proxy, function)(sender=caller)


def test_roles__after_deployment__are_the_admin_alone(contract, admin_role, admin, deployer):
    assert contract.proxy.hasRole(admin_role, admin)
    assert not contract.proxy.hasRole(admin_role, deployer)
    assert contract.proxy.DEFAULT_ADMIN_ROLE() == admin_role == bytes(32)
    assert contract.proxy.getRoleAdmin(admin_role) == admin_role
    assert contract.proxy.getRoleMembers(admin_role) == [admin]
    assert contract.proxy.getRoleMemberCount(admin_role) == 1
    assert contract.proxy.getRoleMember(admin_role, 0) == admin


def test_roles__of_the_implementation__are_nobody_s(contract, admin_role):
    assert contract.implementation.getRoleMembers(admin_role) == []


def test_grant_role__by_admin__lets_the_account_act_until_revoked(
    contract, admin_role, admin, stranger
):
    proxy = contract.proxy
    granted = proxy.grantRole(admin_role, stranger, sender=admin)
    assert granted.events == [proxy.RoleGranted(role=admin_role, account=stranger, sender=admin)]
    assert proxy.getRoleMembers(admin_role) == [admin, stranger]
    proxy.pause(sender=stranger)
    revoked = proxy.revokeRole(admin_role, stranger, sender=admin)
    assert revoked.events == [proxy.RoleRevoked(role=admin_role, account=stranger, sender=admin)]
    assert proxy.getRoleMembers(admin_role) == [admin]
    with ape.reverts(proxy.AccessControlUnauthorizedAccount, account=stranger.address):
        proxy.unpause(sender=stranger)


def test_grant_role__twice__changes_and_emits_nothing(contract, admin_role, admin):
    assert contract.proxy.grantRole(admin_role, admin, sender=admin).events == []
    assert contract.proxy.getRoleMembers(admin_role) == [admin]


def test_grant_role__by_anybody_else__reverts(contract, admin_role, deployer, stranger):
    for caller in (deployer, stranger):
        for function in (contract.proxy.grantRole, contract.proxy.revokeRole):
            error = contract.proxy.AccessControlUnauthorizedAccount
            with ape.reverts(error, account=caller.address, neededRole=admin_role):
                function(admin_role, caller, sender=caller)


def test_grant_role__admin_who_cannot_act__reverts(contract, admin_role, admin):
    for account in (ZERO, contract.proxy.address):
        with ape.reverts(contract.proxy.InvalidAdmin, admin=account):
            contract.proxy.grantRole(admin_role, account, sender=admin)
    assert contract.proxy.getRoleMembers(admin_role) == [admin]


def test_other_roles__granted_to_anything__give_no_power_and_leave_freely(
    contract, admin, stranger
):
    proxy = contract.proxy
    for account in (ZERO, proxy.address, stranger.address):
        proxy.grantRole(OTHER_ROLE, account, sender=admin)
    assert proxy.getRoleMemberCount(OTHER_ROLE) == 3
    with ape.reverts(proxy.AccessControlUnauthorizedAccount, account=stranger.address):
        proxy.pause(sender=stranger)
    proxy.renounceRole(OTHER_ROLE, stranger, sender=stranger)
    for account in (ZERO, proxy.address):
        proxy.revokeRole(OTHER_ROLE, account, sender=admin)
    assert proxy.getRoleMembers(OTHER_ROLE) == []


def test_leaving__of_the_last_admin__reverts(contract, admin_role, admin):
    for function in (contract.proxy.revokeRole, contract.proxy.renounceRole):
        with ape.reverts(contract.proxy.LastAdmin, admin=admin.address):
            function(admin_role, admin, sender=admin)
    assert contract.proxy.getRoleMembers(admin_role) == [admin]
    contract.proxy.pause(sender=admin)


def test_leaving__of_one_of_two_admins__leaves_the_other_as_the_last(
    contract, admin_role, admin, stranger
):
    proxy = contract.proxy
    proxy.grantRole(admin_role, stranger, sender=admin)
    renounced = proxy.renounceRole(admin_role, admin, sender=admin)
    assert renounced.events == [proxy.RoleRevoked(role=admin_role, account=admin, sender=admin)]
    assert proxy.getRoleMembers(admin_role) == [stranger]
    for function in (proxy.revokeRole, proxy.renounceRole):
        with ape.reverts(proxy.LastAdmin, admin=stranger.address):
            function(admin_role, stranger, sender=stranger)
    with ape.reverts(proxy.AccessControlUnauthorizedAccount, account=admin.address):
        proxy.pause(sender=admin)


def test_leaving__of_an_account_that_is_no_admin__changes_and_emits_nothing(
    contract, admin_role, admin, stranger
):
    assert contract.proxy.revokeRole(admin_role, stranger, sender=admin).events == []
    assert contract.proxy.renounceRole(admin_role, stranger, sender=stranger).events == []
    assert contract.proxy.getRoleMembers(admin_role) == [admin]


def test_renounce_role__of_another_account__reverts(contract, admin_role, admin, stranger):
    for caller, account in ((admin, stranger), (stranger, admin)):
        with ape.reverts(contract.proxy.AccessControlBadConfirmation):
            contract.proxy.renounceRole(admin_role, account, sender=caller)


def test_administration__of_one_contract__is_none_of_the_other(deployment, admin, stranger):
    group, identity = deployment.group_messages.proxy, deployment.identity_updates.proxy
    group.grantRole(bytes(32), stranger, sender=admin)
    group.pause(sender=stranger)
    with ape.reverts(identity.AccessControlUnauthorizedAccount, account=stranger.address):
        identity.pause(sender=stranger)
    bounds = identity.payloadBounds()
    assert (identity.paused(), bounds.minimum, bounds.maximum) == (False, *PAYLOAD_BOUNDS)
