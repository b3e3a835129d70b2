"""XIP-49 §2.2.1's prototype, called by the ABI that stands there and not by this project's."""

import ape
import eth_abi
import pytest
from eth_utils import keccak

NODE = "(bytes,string,bool)"
NODES = f"(uint32,{NODE})[]"
NODE_UPDATED = keccak(text=f"NodeUpdated(uint256,{NODE})")
SELECTORS = {
    "addNode(address,bytes,string)": "a0eae81d",
    "updateHealth(uint256,bool)": "8354196f",
    "healthyNodes()": "17b5b840",
    "allNodes()": "02f6f1ba",
    "getNode(uint256)": "4f0f4aa9",
    "transferFrom(address,address,uint256)": "23b872dd",
    "updateHttpAddress(uint256,string)": "50d80993",
}


@pytest.fixture
def send(registry):
    """Sends a call of the prototype's and returns the nodes that its events tell of."""

    def of(sender, signature, *arguments):
        receipt = sender.transfer(registry, 0, data=calldata(signature, *arguments))
        logs = [log for log in receipt.logs if bytes(log["topics"][0]) == NODE_UPDATED]
        return [eth_abi.decode(("uint256", NODE), bytes(log["data"])) for log in logs]

    return of


@pytest.fixture
def read(registry, networks):
    """Calls a function of the prototype's and decodes its answer by the prototype's type."""

    def of(answer, signature, *arguments):
        call = {"to": registry.address, "data": "0x" + calldata(signature, *arguments).hex()}
        data = networks.provider.make_request("eth_call", [call, "latest"])
        (value,) = eth_abi.decode((answer,), bytes.fromhex(data.removeprefix("0x")))
        return value

    return of


def calldata(signature, *arguments):
    types = signature[signature.index("(") + 1 : -1]
    return bytes.fromhex(SELECTORS[signature]) + eth_abi.encode(
        types.split(",") if types else (), arguments
    )


def test_prototype__selectors__are_its_signatures():
    for signature, selector in SELECTORS.items():
        assert keccak(text=signature)[:4].hex() == selector


def test_prototype__each_of_its_calls__does_what_it_says(
    send, read, registry, owner, operator, stranger, public_key
):
    one, two = ((public_key(secret), f"http://{secret}.test", True) for secret in (1, 2))
    add, health = "addNode(address,bytes,string)", "updateHealth(uint256,bool)"
    assert send(owner, add, operator.address, *one[:2]) == [(100, one)]
    assert send(owner, add, operator.address, *two[:2]) == [(200, two)]
    assert read(NODES, "allNodes()") == ((100, one), (200, two))

    disabled = (*one[:2], False)
    assert send(owner, health, 100, False) == [(100, disabled)]
    assert read(NODES, "healthyNodes()") == ((200, two),)
    assert read(NODES, "allNodes()") == ((100, disabled), (200, two))
    assert read(NODE, "getNode(uint256)", 100) == disabled

    parties = (operator.address, stranger.address)
    assert send(owner, "transferFrom(address,address,uint256)", *parties, 200) == []
    assert registry.ownerOf(200) == stranger


def test_prototype__update_http_address__works_once_the_owner_has_opened_it(
    send, registry, owner, operator, public_key
):
    send(owner, "addNode(address,bytes,string)", operator.address, public_key(1), "http://1.test")
    update = ("updateHttpAddress(uint256,string)", 100, "http://moved.test")
    with ape.reverts(registry.HttpAddressUpdatesClosed, nodeId=100):
        send(operator, *update)
    registry.setHttpAddressUpdatesOpen(True, sender=owner)
    assert send(operator, *update) == [(100, (public_key(1), "http://moved.test", True))]
