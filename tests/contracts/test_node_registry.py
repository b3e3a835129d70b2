import ape
import eth_abi
import pytest
from eth_utils import keccak

from support.vectors import case_name, from_hex, load

HTTP_ADDRESS = "http://node.test:8080"
KEYS = load("public_keys")["keys"]


def node_updated(log):
    """The arguments of a NodeUpdated log, after checking that it is one."""
    topic = keccak(text="NodeUpdated(uint256,(bytes,string,bool))")
    assert [bytes(value) for value in log["topics"]] == [topic]
    return eth_abi.decode(("uint256", "(bytes,string,bool)"), bytes(log["data"]))


def ids(nodes):
    return [node.nodeId for node in nodes]


def test_construct__names_and_owner__are_the_registry_s(registry, owner):
    assert registry.name() == "XMTP Node Operator"
    assert registry.symbol() == "XMTP"
    assert registry.owner() == owner
    assert registry.nodeCount() == 0
    assert registry.allNodes() == registry.healthyNodes() == []


def test_construct__with_zero_owner__reverts(project, deployer):
    with ape.reverts(project.NodeRegistry.OwnableInvalidOwner):
        deployer.deploy(project.NodeRegistry, "0x0000000000000000000000000000000000000000")


def test_add_node__three_times__gives_the_ids_100_200_300(three_nodes, operator, public_key):
    assert ids(three_nodes.allNodes()) == [100, 200, 300]
    assert three_nodes.nodeCount() == 3
    assert three_nodes.ownerOf(200) == operator
    assert three_nodes.balanceOf(operator) == 3
    node = three_nodes.getNode(200)
    assert (node.signingKeyPub, node.httpAddress) == (public_key(2), "http://node2.test")
    assert node.isHealthy


def test_add_node__by_owner__emits_the_unindexed_event(registry, owner, operator, public_key):
    predicted = registry.addNode.call(operator, public_key(1), HTTP_ADDRESS, sender=owner)
    receipt = registry.addNode(operator, public_key(1), HTTP_ADDRESS, sender=owner)
    minted, updated = receipt.logs
    assert bytes(minted["topics"][0]) == keccak(text="Transfer(address,address,uint256)")
    assert node_updated(updated) == (100, (public_key(1), HTTP_ADDRESS, True))
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


def test_add_node__empty_http_address__reverts(registry, owner, operator, public_key):
    with ape.reverts(registry.EmptyHttpAddress):
        registry.addNode(operator, public_key(1), "", sender=owner)


def test_add_node__for_the_zero_address__reverts(registry, owner, public_key):
    zero = "0x0000000000000000000000000000000000000000"
    with ape.reverts(registry.ERC721InvalidReceiver, receiver=zero):
        registry.addNode(zero, public_key(1), HTTP_ADDRESS, sender=owner)


def test_update_health__disable_and_enable__changes_status_and_nothing_else(
    three_nodes, owner, public_key
):
    for status in (False, True):
        (log,) = three_nodes.updateHealth(200, status, sender=owner).logs
        assert node_updated(log) == (200, (public_key(2), "http://node2.test", status))
        assert three_nodes.getNode(200).isHealthy is status


def test_update_health__by_anybody_else__reverts(three_nodes, operator, stranger):
    for caller in (operator, stranger):
        with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=caller.address):
            three_nodes.updateHealth(100, False, sender=caller)


@pytest.mark.parametrize("node_id", [0, 1, 99, 101, 400])
def test_calls__on_a_node_that_does_not_exist__revert(three_nodes, owner, node_id):
    error = three_nodes.ERC721NonexistentToken
    with ape.reverts(error, tokenId=node_id):
        three_nodes.updateHealth(node_id, False, sender=owner)
    with ape.reverts(error, tokenId=node_id):
        three_nodes.getNode(node_id)


def test_healthy_nodes__one_disabled__holds_the_others_without_a_gap(three_nodes, owner):
    three_nodes.updateHealth(200, False, sender=owner)
    assert ids(three_nodes.healthyNodes()) == [100, 300]
    assert ids(three_nodes.allNodes()) == [100, 200, 300]


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (0, 2, [100, 200]),
        (2, 2, [300]),
        (1, 1, [200]),
        (0, 3, [100, 200, 300]),
        (0, 2**256 - 1, [100, 200, 300]),
        (3, 5, []),
        (2**256 - 1, 2**256 - 1, []),
        (0, 0, []),
    ],
)
def test_nodes_page__any_offset_and_limit__is_that_part(three_nodes, offset, limit, expected):
    page = three_nodes.nodesPage(offset, limit)
    assert ids(page) == expected
    assert [node.node.httpAddress for node in page] == [
        f"http://node{node_id // 100}.test" for node_id in expected
    ]


def test_update_http_address__while_closed__reverts(three_nodes, operator):
    assert not three_nodes.httpAddressUpdatesOpen()
    with ape.reverts(three_nodes.HttpAddressUpdatesClosed, nodeId=100):
        three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator)


def test_update_http_address__opened_and_closed_again__is_the_holder_s_in_between(
    three_nodes, owner, operator, public_key
):
    opened = three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    assert opened.events == [three_nodes.HttpAddressUpdatesOpenChanged(open=True)]
    (log,) = three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator).logs
    assert node_updated(log) == (100, (public_key(1), HTTP_ADDRESS, True))
    three_nodes.setHttpAddressUpdatesOpen(False, sender=owner)
    with ape.reverts(three_nodes.HttpAddressUpdatesClosed, nodeId=100):
        three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=operator)


def test_update_http_address__by_owner_or_stranger__reverts(three_nodes, owner, stranger):
    three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    for caller in (owner, stranger):
        with ape.reverts(three_nodes.NotNodeHolder, nodeId=100, caller=caller.address):
            three_nodes.updateHttpAddress(100, HTTP_ADDRESS, sender=caller)


def test_update_http_address__empty_or_of_no_node__reverts(three_nodes, owner, operator):
    three_nodes.setHttpAddressUpdatesOpen(True, sender=owner)
    with ape.reverts(three_nodes.EmptyHttpAddress):
        three_nodes.updateHttpAddress(100, "", sender=operator)
    with ape.reverts(three_nodes.ERC721NonexistentToken, tokenId=400):
        three_nodes.updateHttpAddress(400, HTTP_ADDRESS, sender=operator)


def test_set_http_address_updates_open__by_anybody_else__reverts(three_nodes, operator):
    with ape.reverts(three_nodes.OwnableUnauthorizedAccount, account=operator.address):
        three_nodes.setHttpAddressUpdatesOpen(True, sender=operator)
