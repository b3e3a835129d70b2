import ape
import pytest

from support.vectors import case_name, from_hex, load

from .conftest import ids, key_address

KEYS = load("public_keys")["keys"]
GREATEST = 2**256 - 1


@pytest.fixture(scope="module")
def many_nodes(project, deployer, owner, operator, public_key):
    """A registry that begins like `three_nodes` and goes on to node 3000."""
    registry = deployer.deploy(project.NodeRegistry, owner)
    for secret in range(1, 31):
        registry.addNode(operator, public_key(secret), f"http://node{secret}.test", sender=owner)
    return registry


def gas_of(networks, registry, method, *arguments):
    """Gas of a call's execution, as a contract that makes the call would pay it."""
    call = {"to": registry.address, "data": "0x" + method.encode_input(*arguments).hex()}
    trace = networks.provider.make_request(
        "debug_traceCall", [call, "latest", {"tracer": "callTracer"}]
    )
    return int(trace["gasUsed"], 16)


@pytest.mark.parametrize("secret", [1, 2, 3])
def test_look_up__by_key_or_its_address__finds_the_node(three_nodes, public_key, secret):
    key = public_key(secret)
    for found in (
        three_nodes.nodeBySigningKey(key),
        three_nodes.nodeByKeyAddress(key_address(key)),
    ):
        assert found.nodeId == 100 * secret
        assert found.node == three_nodes.getNode(100 * secret)


def test_look_up__of_a_disabled_node__still_finds_it(three_nodes, owner, public_key):
    three_nodes.updateHealth(200, False, sender=owner)
    found = three_nodes.nodeBySigningKey(public_key(2))
    assert (found.nodeId, found.node.isHealthy) == (200, False)
    assert three_nodes.nodeByKeyAddress(key_address(public_key(2))) == found


def test_look_up__of_a_key_that_no_node_has__reverts(three_nodes, operator, public_key):
    key = public_key(4)
    with ape.reverts(three_nodes.UnknownSigningKey, keyAddress=key_address(key)):
        three_nodes.nodeBySigningKey(key)
    # The operator holds the nodes, but its own address is no signing key's.
    for account in (operator.address, "0x0000000000000000000000000000000000000000"):
        with ape.reverts(three_nodes.UnknownSigningKey, keyAddress=account):
            three_nodes.nodeByKeyAddress(account)


@pytest.mark.parametrize("case", [key for key in KEYS if not key["valid"]], ids=case_name)
def test_look_up__of_an_invalid_key_of_the_vectors__reverts(three_nodes, case):
    key = from_hex(case["key"])
    if len(key) != 65:
        expected = ape.reverts(three_nodes.InvalidSigningKeyLength, length=len(key))
    elif key[0] != 4:
        expected = ape.reverts(three_nodes.InvalidSigningKeyPrefix, prefix=key[:1])
    else:
        expected = ape.reverts(three_nodes.SigningKeyNotOnCurve)
    with expected:
        three_nodes.nodeBySigningKey(key)


def test_healthy_nodes__one_disabled__holds_the_others_without_a_gap(three_nodes, owner):
    three_nodes.updateHealth(200, False, sender=owner)
    assert ids(three_nodes.healthyNodes()) == [100, 300]
    assert ids(three_nodes.allNodes()) == [100, 200, 300]
    for entry in (*three_nodes.healthyNodes(), *three_nodes.allNodes()):
        assert entry.node == three_nodes.getNode(entry.nodeId)


def test_healthy_nodes__all_disabled_and_one_enabled_again__is_that_one(three_nodes, owner):
    for node_id in (100, 200, 300):
        three_nodes.updateHealth(node_id, False, sender=owner)
    assert three_nodes.healthyNodes() == []
    three_nodes.updateHealth(300, True, sender=owner)
    assert ids(three_nodes.healthyNodes()) == [300]


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (0, 2, [100, 200]),
        (2, 2, [300]),
        (1, 1, [200]),
        (0, 3, [100, 200, 300]),
        (0, GREATEST, [100, 200, 300]),
        (1, GREATEST, [200, 300]),
        (3, 5, []),
        (2**32, 1, []),
        (GREATEST, GREATEST, []),
        (GREATEST, 1, []),
        (0, 0, []),
    ],
)
def test_nodes_page__any_offset_and_limit__is_that_part(
    three_nodes, owner, offset, limit, expected
):
    page = three_nodes.nodesPage(offset, limit)
    assert ids(page) == expected
    for entry in page:
        assert entry.node == three_nodes.getNode(entry.nodeId)
    assert three_nodes.healthyNodesPage(offset, limit) == page
    three_nodes.updateHealth(200, False, sender=owner)
    healthy = [node_id for node_id in expected if node_id != 200]
    assert ids(three_nodes.healthyNodesPage(offset, limit)) == healthy
    assert ids(three_nodes.nodesPage(offset, limit)) == expected


def test_pages__of_an_empty_registry__are_empty(registry):
    for offset, limit in ((0, 10), (5, 5), (GREATEST, GREATEST)):
        assert registry.nodesPage(offset, limit) == []
        assert registry.healthyNodesPage(offset, limit) == []


@pytest.mark.parametrize("limit", [1, 7, 30, 31])
def test_pages__one_after_another__meet_every_node_once(many_nodes, owner, limit):
    disabled = {100, 700, 800, 3000}
    for node_id in disabled:
        many_nodes.updateHealth(node_id, False, sender=owner)
    offsets = range(0, many_nodes.nodeCount(), limit)
    pages = [ids(many_nodes.nodesPage(offset, limit)) for offset in offsets]
    assert [node for page in pages for node in page] == list(range(100, 3100, 100))
    healthy = [ids(many_nodes.healthyNodesPage(offset, limit)) for offset in offsets]
    assert healthy == [[node for node in page if node not in disabled] for page in pages]


@pytest.mark.parametrize("listing", ["nodesPage", "healthyNodesPage"])
def test_page__in_a_larger_registry__costs_the_same(networks, three_nodes, many_nodes, listing):
    few, many = getattr(three_nodes, listing), getattr(many_nodes, listing)
    page = gas_of(networks, many_nodes, many, 0, 3)
    assert page == gas_of(networks, three_nodes, few, 0, 3)
    # Only the longer HTTP addresses and the offset's own byte differ in the last page.
    last = gas_of(networks, many_nodes, many, 27, 3)
    assert abs(last - page) < page // 100
    assert gas_of(networks, many_nodes, many, 0, 30) > 5 * page


def test_look_up__in_a_larger_registry__costs_the_same(
    networks, three_nodes, many_nodes, public_key
):
    key, address = public_key(2), key_address(public_key(2))
    for method, argument in (("nodeBySigningKey", key), ("nodeByKeyAddress", address)):
        few = gas_of(networks, three_nodes, getattr(three_nodes, method), argument)
        assert few == gas_of(networks, many_nodes, getattr(many_nodes, method), argument)
