import ape

HTTP_ADDRESS = "http://node.test:8080"
ZERO = "0x0000000000000000000000000000000000000000"


def test_ownership__in_two_steps__moves_what_only_the_owner_may(three_nodes, owner, stranger):
    started = three_nodes.transferOwnership(stranger, sender=owner)
    parties = {"previousOwner": owner, "newOwner": stranger}
    assert started.events == [three_nodes.OwnershipTransferStarted(**parties)]
    assert (three_nodes.owner(), three_nodes.pendingOwner()) == (owner, stranger)
    accepted = three_nodes.acceptOwnership(sender=stranger)
    assert accepted.events == [three_nodes.OwnershipTransferred(**parties)]
    assert (three_nodes.owner(), three_nodes.pendingOwner()) == (stranger, ZERO)
    with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=owner.address):
        three_nodes.updateHealth(100, False, sender=owner)
    three_nodes.updateHealth(100, False, sender=stranger)


def test_ownership__before_it_is_accepted__stays_with_the_owner_alone(
    three_nodes, owner, operator, stranger, public_key
):
    three_nodes.transferOwnership(stranger, sender=owner)
    error = three_nodes.OwnableUnauthorizedAccount
    calls = (
        lambda: three_nodes.addNode(operator, public_key(4), HTTP_ADDRESS, sender=stranger),
        lambda: three_nodes.updateHealth(100, False, sender=stranger),
        lambda: three_nodes.setHttpAddressUpdatesOpen(True, sender=stranger),
        lambda: three_nodes.transferFrom(operator, stranger, 100, sender=stranger),
        lambda: three_nodes.transferOwnership(operator, sender=stranger),
    )
    for call in calls:
        with ape.reverts(error, account=stranger.address):
            call()
    three_nodes.updateHealth(100, False, sender=owner)


def test_ownership__accepted_by_another_than_the_pending_owner__reverts(
    three_nodes, owner, operator, stranger
):
    three_nodes.transferOwnership(stranger, sender=owner)
    for caller in (operator, owner):
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=caller.address):
            three_nodes.acceptOwnership(sender=caller)
    assert three_nodes.owner() == owner


def test_ownership__offered_to_another_or_to_nobody__can_no_longer_be_accepted(
    three_nodes, owner, operator, stranger
):
    for instead in (operator.address, ZERO):
        three_nodes.transferOwnership(stranger, sender=owner)
        three_nodes.transferOwnership(instead, sender=owner)
        assert three_nodes.pendingOwner() == instead
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=stranger.address):
            three_nodes.acceptOwnership(sender=stranger)
    assert three_nodes.owner() == owner


def test_ownership__accepted_twice__reverts(three_nodes, owner, stranger):
    three_nodes.transferOwnership(stranger, sender=owner)
    three_nodes.acceptOwnership(sender=stranger)
    with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=stranger.address):
        three_nodes.acceptOwnership(sender=stranger)


def test_transfer_ownership__by_anybody_else__reverts(three_nodes, deployer, operator, stranger):
    for caller in (deployer, operator, stranger):
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=caller.address):
            three_nodes.transferOwnership(caller, sender=caller)


# The ABI calls it pure, so a transaction has to be built from its calldata.
def test_renounce_ownership__by_anybody__reverts_and_leaves_the_owner(three_nodes, owner, stranger):
    data = three_nodes.renounceOwnership.encode_input()
    for caller in (owner, stranger):
        with ape.reverts(three_nodes.RenouncingDisabled):
            caller.transfer(three_nodes, 0, data=data)
    assert three_nodes.owner() == owner
    three_nodes.updateHealth(100, False, sender=owner)
