import ape
import pytest

ZERO = "0x0000000000000000000000000000000000000000"
TRANSFERS = {
    "transferFrom": lambda registry: registry.transferFrom,
    "safeTransferFrom": lambda registry: registry.safeTransferFrom,
    "safeTransferFrom with data": lambda registry: (
        lambda *arguments, **options: registry.safeTransferFrom(*arguments, b"data", **options)
    ),
}


@pytest.fixture(params=TRANSFERS.values(), ids=TRANSFERS.keys())
def transfer(request, three_nodes):
    return request.param(three_nodes)


def test_transfer__by_the_owner_without_approval__moves_the_node(
    transfer, three_nodes, owner, operator, stranger
):
    receipt = transfer(operator, stranger, 200, sender=owner)
    assert three_nodes.ownerOf(200) == stranger
    assert three_nodes.balanceOf(operator) == 2
    assert receipt.events == [
        three_nodes.Transfer(**{"from": operator, "to": stranger, "tokenId": 200}),
        three_nodes.NodeTransferred(account=owner, nodeId=200, to=stranger),
    ]


def test_transfer__by_holder_or_stranger__reverts(transfer, three_nodes, operator, stranger):
    for caller in (operator, stranger):
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=caller.address):
            transfer(operator, stranger, 200, sender=caller)
    assert three_nodes.ownerOf(200) == operator


def test_transfer__from_another_than_the_holder__reverts(
    transfer, three_nodes, owner, operator, stranger
):
    with ape.reverts(three_nodes.ERC721IncorrectOwner, tokenId=200, owner=operator.address):
        transfer(stranger, owner, 200, sender=owner)


def test_transfer__to_the_zero_address__reverts(transfer, three_nodes, owner, operator):
    with ape.reverts(three_nodes.ERC721InvalidReceiver, receiver=ZERO):
        transfer(operator, ZERO, 200, sender=owner)


def test_transfer__of_a_disabled_node__moves_it_and_leaves_it_disabled(
    transfer, three_nodes, owner, operator, stranger
):
    three_nodes.updateHealth(200, False, sender=owner)
    transfer(operator, stranger, 200, sender=owner)
    assert three_nodes.ownerOf(200) == stranger
    assert not three_nodes.getNode(200).isHealthy


def test_transfer__of_no_node__reverts(transfer, three_nodes, owner, operator, stranger):
    with ape.reverts(three_nodes.ERC721NonexistentToken, tokenId=400):
        transfer(operator, stranger, 400, sender=owner)


def test_safe_transfer__to_a_contract__tells_it_who_and_what(
    test_contracts, three_nodes, owner, operator, deployer
):
    holder = deployer.deploy(test_contracts["NodeHolder"])
    three_nodes.safeTransferFrom(operator, holder, 200, b"data", sender=owner)
    assert holder.lastOperator() == owner
    assert holder.lastData() == b"data"
    assert three_nodes.ownerOf(200) == holder


def test_safe_transfer__to_a_contract_that_takes_none__reverts(three_nodes, owner, operator):
    with ape.reverts(three_nodes.ERC721InvalidReceiver, receiver=three_nodes.address):
        three_nodes.safeTransferFrom(operator, three_nodes, 200, sender=owner)


def test_transfer__of_a_node__gives_the_address_update_to_the_new_holder(
    three_nodes, owner, operator, stranger
):
    three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    three_nodes.transferFrom(operator, stranger, 200, sender=owner)
    with ape.reverts(three_nodes.NotNodeHolder, nodeId=200, caller=operator.address):
        three_nodes.updateHttpAddress(200, "http://old.test", sender=operator)
    three_nodes.updateHttpAddress(200, "http://new.test", sender=stranger)
    assert three_nodes.getNode(200).httpAddress == "http://new.test"


# The ABI calls both pure, so a transaction has to be built from their calldata.
@pytest.mark.parametrize(
    "approval",
    [
        lambda registry, spender: registry.approve.encode_input(spender, 200),
        lambda registry, spender: registry.setApprovalForAll.encode_input(spender, True),
        lambda registry, spender: registry.setApprovalForAll.encode_input(spender, False),
    ],
    ids=["approve", "approve all", "disapprove all"],
)
def test_approval__by_holder_or_owner__reverts(three_nodes, owner, operator, stranger, approval):
    data = approval(three_nodes, stranger)
    for caller in (operator, owner):
        with ape.reverts(three_nodes.ApprovalsDisabled, spender=stranger.address):
            caller.transfer(three_nodes, 0, data=data)
    assert three_nodes.getApproved(200) == ZERO
    assert not three_nodes.isApprovedForAll(operator, stranger)
