import ape
import pytest

from .conftest import node_updated

HTTP_ADDRESS = "http://node.test:8080"
LONGEST = 512


@pytest.fixture
def open_nodes(three_nodes, owner):
    """Three nodes whose holders may change their addresses."""
    three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    return three_nodes


@pytest.fixture(params=["addNode", "updateHttpAddress"])
def set_address(request, open_nodes, owner, operator, public_key):
    """Both ways an address comes into the registry; each returns the id of the node it set."""

    def add(http_address):
        open_nodes.addNode(operator, public_key(4), http_address, sender=owner)
        return 400

    def update(http_address):
        open_nodes.updateHttpAddress(200, http_address, sender=operator)
        return 200

    return {"addNode": add, "updateHttpAddress": update}[request.param]


# The second is 512 bytes in 256 characters, the third 512 bytes in 128.
@pytest.mark.parametrize(
    "longest", [LONGEST * "a", LONGEST // 2 * "é", LONGEST // 4 * "𝄞"], ids=len
)
def test_http_address__of_the_greatest_length_in_bytes__is_kept(open_nodes, set_address, longest):
    assert open_nodes.maxHttpAddressLength() == LONGEST == len(longest.encode())
    assert open_nodes.getNode(set_address(longest)).httpAddress == longest


def test_http_address__of_one_byte__is_kept(open_nodes, set_address):
    assert open_nodes.getNode(set_address("a")).httpAddress == "a"


@pytest.mark.parametrize(
    ("too_long", "size"),
    [((LONGEST + 1) * "a", 513), (257 * "é", 514), (LONGEST * "a" + "é", 514)],
)
def test_http_address__too_long_in_bytes__reverts(open_nodes, set_address, too_long, size):
    with ape.reverts(open_nodes.HttpAddressTooLong, length=size, maximum=LONGEST):
        set_address(too_long)
    assert open_nodes.nodeCount() == 3
    assert open_nodes.getNode(200).httpAddress == "http://node2.test"


def test_http_address__empty__reverts(open_nodes, set_address):
    with ape.reverts(open_nodes.EmptyHttpAddress):
        set_address("")
    assert open_nodes.nodeCount() == 3


def test_update_http_address__while_closed__reverts(three_nodes, operator):
    assert not three_nodes.httpAddressUpdatesOpen()
    with ape.reverts(three_nodes.HttpAddressUpdatesClosed, nodeId=100):
        three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator)


def test_update_http_address__opened_and_closed_again__is_the_holder_s_in_between(
    three_nodes, owner, operator, public_key
):
    opened = three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    changed = three_nodes.HttpAddressUpdatesOpenChanged
    assert opened.events == [changed(account=owner, open=True)]
    assert three_nodes.httpAddressUpdatesOpen()

    updated = three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator)
    told = {"account": operator, "nodeId": 100, "httpAddress": HTTP_ADDRESS}
    assert updated.events[0] == three_nodes.NodeHttpAddressUpdated(**told)
    assert len(updated.logs) == 2
    assert node_updated(updated) == (100, (public_key(1), HTTP_ADDRESS, True))

    closed = three_nodes.setHttpAddressUpdatesOpen(False, sender=owner)
    assert closed.events == [changed(account=owner, open=False)]
    with ape.reverts(three_nodes.HttpAddressUpdatesClosed, nodeId=100):
        three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator)


def test_update_http_address__of_a_disabled_node__leaves_it_disabled(open_nodes, owner, operator):
    open_nodes.updateHealth(100, False, sender=owner)
    open_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator)
    node = open_nodes.getNode(100)
    assert (node.httpAddress, node.isHealthy) == (HTTP_ADDRESS, False)


def test_update_http_address__by_owner_or_stranger__reverts(open_nodes, owner, stranger):
    for caller in (owner, stranger):
        with ape.reverts(open_nodes.NotNodeHolder, nodeId=100, caller=caller.address):
            open_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=caller)


def test_update_http_address__by_an_owner_who_took_the_node__is_told_step_by_step(
    three_nodes, owner, operator
):
    three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    taken = three_nodes.transferFrom(operator, owner, 100, sender=owner)
    changed = three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=owner)
    returned = three_nodes.transferFrom(owner, operator, 100, sender=owner)
    told = {"account": owner, "nodeId": 100}
    assert taken.events[-1] == three_nodes.NodeTransferred(**told, to=owner)
    assert changed.events[0] == three_nodes.NodeHttpAddressUpdated(**told, httpAddress=HTTP_ADDRESS)
    assert returned.events[-1] == three_nodes.NodeTransferred(**told, to=operator)
    assert three_nodes.getNode(100).httpAddress == HTTP_ADDRESS


def test_update_http_address__of_no_node__reverts(open_nodes, operator):
    with ape.reverts(open_nodes.ERC721NonexistentToken, tokenId=400):
        open_nodes.updateHttpAddress(400, HTTP_ADDRESS, sender=operator)


def test_set_http_address_updates_open__by_anybody_else__reverts(three_nodes, operator, stranger):
    for caller in (operator, stranger):
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=caller.address):
            three_nodes.setHttpAddressUpdatesOpen(True, sender=caller)
