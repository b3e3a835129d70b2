import ape
import pytest

from .conftest import PAYLOAD_BOUNDS

IDENTIFIER = bytes(32)
MINIMUM, MAXIMUM = PAYLOAD_BOUNDS
CAP = 1024 * 1024


def test_payload_bounds__after_initialization__are_those_given(contract):
    bounds = contract.proxy.payloadBounds()
    assert (bounds.minimum, bounds.maximum) == PAYLOAD_BOUNDS
    assert contract.proxy.payloadSizeCap() == CAP


@pytest.mark.parametrize("size", PAYLOAD_BOUNDS)
def test_publish__exactly_at_a_bound__is_accepted(contract, publisher, size):
    contract.publish(IDENTIFIER, bytes(size), sender=publisher)
    assert contract.proxy.lastSequenceId() == 1


@pytest.mark.parametrize("size", [0, MINIMUM - 1, MAXIMUM + 1])
def test_publish__beyond_a_bound__reverts_with_size_and_bounds_and_takes_no_id(
    contract, publisher, size
):
    error = contract.proxy.PayloadSizeOutOfBounds
    with ape.reverts(error, size=size, minimum=MINIMUM, maximum=MAXIMUM):
        contract.publish(IDENTIFIER, bytes(size), sender=publisher)
    assert contract.proxy.lastSequenceId() == 0


def test_set_payload_bounds__by_admin__holds_from_the_next_payload_on(contract, admin, publisher):
    receipt = contract.proxy.setPayloadBounds(5, 7, sender=admin)
    assert receipt.events == [contract.proxy.PayloadBoundsSet(account=admin, minimum=5, maximum=7)]
    for size in (5, 7):
        contract.publish(IDENTIFIER, bytes(size), sender=publisher)
    for size in (4, 8):
        with ape.reverts(contract.proxy.PayloadSizeOutOfBounds, size=size, minimum=5, maximum=7):
            contract.publish(IDENTIFIER, bytes(size), sender=publisher)


def test_set_payload_bounds__of_one_contract__leaves_the_other(deployment, admin):
    deployment.group_messages.proxy.setPayloadBounds(5, 7, sender=admin)
    bounds = deployment.identity_updates.proxy.payloadBounds()
    assert (bounds.minimum, bounds.maximum) == PAYLOAD_BOUNDS


def test_publish__empty_payload_with_minimum_zero__is_accepted(contract, admin, publisher):
    contract.proxy.setPayloadBounds(0, 1, sender=admin)
    contract.publish(IDENTIFIER, b"", sender=publisher)
    assert contract.proxy.lastSequenceId() == 1


def test_publish__with_equal_bounds__accepts_that_size_alone(contract, admin, publisher):
    contract.proxy.setPayloadBounds(3, 3, sender=admin)
    contract.publish(IDENTIFIER, bytes(3), sender=publisher)
    for size in (2, 4):
        with ape.reverts(contract.proxy.PayloadSizeOutOfBounds, size=size, minimum=3, maximum=3):
            contract.publish(IDENTIFIER, bytes(size), sender=publisher)


def test_publish__at_the_hard_cap__is_accepted_and_not_above(contract, admin, publisher):
    contract.proxy.setPayloadBounds(CAP, CAP, sender=admin)
    contract.publish(IDENTIFIER, bytes(CAP), sender=publisher, gas=28_000_000)
    with ape.reverts(contract.proxy.PayloadSizeOutOfBounds, size=CAP + 1):
        contract.publish(IDENTIFIER, bytes(CAP + 1), sender=publisher, gas=28_000_000)


@pytest.mark.parametrize(
    ("minimum", "maximum"), [(2, 1), (0, 0), (0, CAP + 1), (2**32 - 1, 2**32 - 1)]
)
def test_set_payload_bounds__invalid__reverts_with_the_cap(contract, admin, minimum, maximum):
    error = contract.proxy.InvalidPayloadBounds
    with ape.reverts(error, minimum=minimum, maximum=maximum, cap=CAP):
        contract.proxy.setPayloadBounds(minimum, maximum, sender=admin)
    bounds = contract.proxy.payloadBounds()
    assert (bounds.minimum, bounds.maximum) == PAYLOAD_BOUNDS


def test_construct_proxy__with_invalid_bounds__reverts(project, contract, deployer, admin):
    call = contract.implementation.initialize.encode_input(admin, 0, CAP + 1)
    error = contract.proxy.InvalidPayloadBounds
    with ape.reverts(error, minimum=0, maximum=CAP + 1, cap=CAP):
        deployer.deploy(project.SequencedLogProxy, contract.implementation, call)


def test_set_payload_bounds__by_anybody_else__reverts(
    contract, admin_role, deployer, stranger, publisher
):
    error = contract.proxy.AccessControlUnauthorizedAccount
    for caller in (deployer, stranger, publisher):
        with ape.reverts(error, account=caller.address, neededRole=admin_role):
            contract.proxy.setPayloadBounds(0, 1, sender=caller)
