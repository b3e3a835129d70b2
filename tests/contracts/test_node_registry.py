import ape
import pytest
from ape.exceptions import VirtualMachineError

from support.vectors import case_name, from_hex, load

from .conftest import ids, key_address, node_updated

HTTP_ADDRESS = "http://node.test:8080"
ZERO = "0x0000000000000000000000000000000000000000"
KEYS = load("public_keys")["keys"]


def test_construct__names_and_owner__are_the_registry_s(registry, owner):
    assert registry.name() == "XMTP Node Operator"
    assert registry.symbol() == "XMTP"
    assert registry.owner() == owner
    assert registry.nodeCount() == 0
    assert registry.allNodes() == registry.healthyNodes() == []
    assert registry.pendingOwner() == ZERO


def test_construct__with_zero_owner__reverts(project, deployer):
    with ape.reverts(project.NodeRegistry.OwnableInvalidOwner, owner=ZERO):
        deployer.deploy(project.NodeRegistry, ZERO)


def test_add_node__three_times__gives_the_ids_100_200_300(three_nodes, operator, public_key):
    assert ids(three_nodes.allNodes()) == [100, 200, 300]
    assert three_nodes.nodeCount() == 3
    assert three_nodes.ownerOf(200) == operator
    assert three_nodes.balanceOf(operator) == 3
    node = three_nodes.getNode(200)
    assert (node.signingKeyPub, node.httpAddress) == (public_key(2), "http://node2.test")
    assert node.isHealthy


def test_add_node__by_owner__emits_who_added_what(registry, owner, operator, public_key):
    predicted = registry.addNode.call(operator, public_key(1), HTTP_ADDRESS, sender=owner)
    receipt = registry.addNode(operator, public_key(1), HTTP_ADDRESS, sender=owner)
    assert receipt.events[:2] == [
        registry.Transfer(**{"from": ZERO, "to": operator, "tokenId": 100}),
        registry.NodeAdded(account=owner, nodeId=100, holder=operator),
    ]
    assert len(receipt.logs) == 3
    assert node_updated(receipt) == (100, (public_key(1), HTTP_ADDRESS, True))
    assert predicted == 100


def test_add_node__by_anybody_else__reverts(registry, deployer, operator, public_key):
    for caller in (deployer, operator):
        with ape.reverts(registry.OwnableUnauthorizedAccount, account=caller.address):
            registry.addNode(operator, public_key(1), HTTP_ADDRESS, sender=caller)
    assert registry.nodeCount() == 0


@pytest.mark.parametrize("case", [key for key in KEYS if key["valid"]], ids=case_name)
def test_add_node__valid_key_of_the_vectors__is_kept_as_given(registry, owner, operator, case):
    key = from_hex(case["key"])
    registry.addNode(operator, key, HTTP_ADDRESS, sender=owner)
    assert registry.getNode(100).signingKeyPub == key


@pytest.mark.parametrize("case", [key for key in KEYS if not key["valid"]], ids=case_name)
def test_add_node__invalid_key_of_the_vectors__reverts(registry, owner, operator, case):
    key = from_hex(case["key"])
    if len(key) != 65:
        expected = ape.reverts(registry.InvalidSigningKeyLength, length=len(key))
    elif key[0] != 4:
        expected = ape.reverts(registry.InvalidSigningKeyPrefix, prefix=key[:1])
    else:
        x, y = int.from_bytes(key[1:33]), int.from_bytes(key[33:])
        expected = ape.reverts(registry.SigningKeyNotOnCurve, x=x, y=y)
    with expected:
        registry.addNode(operator, key, HTTP_ADDRESS, sender=owner)
    assert registry.nodeCount() == 0


def test_add_node__key_used_before__reverts_even_after_disabling(
    three_nodes, owner, operator, public_key
):
    three_nodes.updateHealth(200, False, sender=owner)
    with ape.reverts(three_nodes.SigningKeyAlreadyUsed, nodeId=200):
        three_nodes.addNode(operator, public_key(2), HTTP_ADDRESS, sender=owner)


def test_add_node__after_a_refused_one__skips_no_id(three_nodes, owner, operator, public_key):
    with ape.reverts(three_nodes.SigningKeyAlreadyUsed):
        three_nodes.addNode(operator, public_key(1), HTTP_ADDRESS, sender=owner)
    three_nodes.addNode(operator, public_key(4), HTTP_ADDRESS, sender=owner)
    assert ids(three_nodes.allNodes()) == [100, 200, 300, 400]


def test_add_node__for_the_zero_address__reverts(registry, owner, public_key):
    with ape.reverts(registry.ERC721InvalidReceiver, receiver=ZERO):
        registry.addNode(ZERO, public_key(1), HTTP_ADDRESS, sender=owner)


@pytest.mark.conforms("2.2.1-4")
def test_add_node__after_the_last_id__reverts(three_nodes, owner, operator, public_key, networks):
    greatest_count, slot = (2**32 - 1) // 100, 7
    word = bytearray(networks.provider.get_storage(three_nodes.address, slot))
    counter = slice(7, 11)
    assert int.from_bytes(word[counter]) == three_nodes.nodeCount() == 3
    word[counter] = (greatest_count - 1).to_bytes(4)
    networks.provider.set_storage(three_nodes.address, slot, bytes(word))
    three_nodes.addNode(operator, public_key(4), HTTP_ADDRESS, sender=owner)
    assert three_nodes.nodeByKeyAddress(key_address(public_key(4))).nodeId == 100 * greatest_count
    with pytest.raises(VirtualMachineError, match="Panic error 0x11"):
        three_nodes.addNode(operator, public_key(5), HTTP_ADDRESS, sender=owner)
    assert three_nodes.nodeCount() == greatest_count


def test_update_health__disable_and_enable__changes_status_and_nothing_else(
    three_nodes, owner, public_key
):
    for status in (False, False, True):
        receipt = three_nodes.updateHealth(200, status, sender=owner)
        changed = three_nodes.NodeHealthUpdated(account=owner, nodeId=200, isHealthy=status)
        assert receipt.events[0] == changed
        assert len(receipt.logs) == 2
        assert node_updated(receipt) == (200, (public_key(2), "http://node2.test", status))
        assert three_nodes.getNode(200).isHealthy is status
    assert [node.node.isHealthy for node in three_nodes.allNodes()] == 3 * [True]


def test_update_health__by_anybody_else__reverts(three_nodes, operator, stranger):
    for caller in (operator, stranger):
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=caller.address):
            three_nodes.updateHealth(100, False, sender=caller)


@pytest.mark.parametrize("node_id", [0, 1, 99, 101, 400])
def test_calls__on_a_node_that_does_not_exist__revert(three_nodes, owner, node_id):
    error = three_nodes.ERC721NonexistentToken
    with ape.reverts(error, tokenId=node_id):
        three_nodes.updateHealth(node_id, False, sender=owner)
    for read in (three_nodes.getNode, three_nodes.ownerOf, three_nodes.tokenURI):
        with ape.reverts(error, tokenId=node_id):
            read(node_id)


def test_token_uri__of_a_node__is_empty(three_nodes):
    assert three_nodes.tokenURI(100) == ""


def test_balance_of__the_zero_address__reverts(three_nodes):
    with ape.reverts(three_nodes.ERC721InvalidOwner, owner=ZERO):
        three_nodes.balanceOf(ZERO)


@pytest.mark.parametrize(
    ("interface_id", "supported"),
    # ERC-165, ERC-721 and its metadata; AccessControl and the one that is never there.
    [
        ("01ffc9a7", True),
        ("80ac58cd", True),
        ("5b5e139f", True),
        ("7965db0b", False),
        ("ffffffff", False),
    ],
)
def test_supports_interface__by_id__is_what_the_registry_implements(
    registry, interface_id, supported
):
    assert registry.supportsInterface(bytes.fromhex(interface_id)) is supported
