"""Reads of the registry, and what a call of it may be made of, over a registry in memory."""

from dataclasses import replace

import eth_abi
import pytest

from chainkit.contracts.checks import HTTP_ADDRESS_MAXIMUM, check_no_contract_of_ours
from chainkit.contracts.registry import (
    PAGE_SIZE,
    RegisteredNode,
    check_account,
    check_http_address,
    check_public_key,
    node_facts,
)
from chainkit.errors import ConfigurationError, InconsistentAnswer, RefusedRequest
from chainkit.signatures import address_of
from chainkit.types import Node
from support.council.fake_registry import (
    HOLDER,
    OTHER_CONTRACTS,
    OWNER_ADDRESS,
    RECORD,
    FakeRegistry,
    block,
    block_hash,
    hexed,
    node_key,
)
from support.endpoints.fake_endpoint import RpcError

NEW_KEY = node_key(9).public_key
URL = "https://node.example"


@pytest.mark.conforms("3.1.1-1")
def test_nodes__more_than_a_page__are_all_read_at_the_block() -> None:
    many = [
        Node(100 * (n + 1), node_key(1).public_key, URL, True) for n in range(2 * PAGE_SIZE + 3)
    ]
    fake = FakeRegistry(nodes=many)

    assert fake.registry().nodes(block(12)) == many
    pinned = {"blockHash": "0x" + block_hash(12).hex(), "requireCanonical": True}
    assert fake.pinned == [pinned] * 4


def test_nodes__page_shorter_than_the_count__is_inconsistent() -> None:
    fake = FakeRegistry(overrides={"nodeCount": hexed(["uint256"], 4)})

    with pytest.raises(InconsistentAnswer, match="nodesPage: expected 4 nodes, got 3"):
        fake.registry().nodes(block())


def test_nodes__same_id_twice__is_inconsistent() -> None:
    fake = FakeRegistry()
    fake.nodes[1] = replace(fake.nodes[1], node_id=100)

    with pytest.raises(InconsistentAnswer, match="growing node ids"):
        fake.registry().nodes(block())


def test_node__known_and_unknown__is_shown_or_refused() -> None:
    fake = FakeRegistry()

    assert fake.registry().node(200, block()) == RegisteredNode(fake.nodes[1], HOLDER)
    words = "node 250: expected a registered node, got none at block"
    with pytest.raises(ConfigurationError, match=words):
        fake.registry().node(250, block())


def test_find_node__refused_for_another_reason__is_not_an_unknown_node() -> None:
    fake = FakeRegistry(overrides={"getNode": RpcError(-32000, "missing trie node")})

    with pytest.raises(RefusedRequest, match="missing trie node"):
        fake.registry().find_node(100, block())


def test_registered_nodes__two_holders__each_is_read_at_the_block() -> None:
    fake = FakeRegistry(holders={200: OWNER_ADDRESS})

    found = fake.registry().registered_nodes(block(12))

    assert [each.node for each in found] == fake.nodes
    assert [each.holder for each in found] == [HOLDER, OWNER_ADDRESS, HOLDER]
    pinned = {"blockHash": "0x" + block_hash(12).hex(), "requireCanonical": True}
    assert fake.pinned == [pinned] * len(fake.pinned)


def test_find_node_of_key__known_and_unknown__is_the_node_or_none() -> None:
    fake = FakeRegistry()
    known, unknown = (address_of(node_key(number).public_key) for number in (2, 9))

    assert fake.registry().find_node_of_key(known, block()) == RegisteredNode(fake.nodes[1], HOLDER)
    assert fake.registry().find_node_of_key(unknown, block()) is None


@pytest.mark.parametrize(
    ("public_key", "words"),
    [
        (NEW_KEY[:-1], "expected 65 bytes, got 64 bytes"),
        (b"", "got 0 bytes"),
        (b"\x03" + NEW_KEY[1:], "a point of secp256k1"),
        (NEW_KEY[:-1] + bytes([NEW_KEY[-1] ^ 1]), "a point of secp256k1"),
    ],
    ids=["short", "empty", "compressed prefix", "off the curve"],
)
def test_check_public_key__unusable__is_refused(public_key: bytes, words: str) -> None:
    check_public_key(NEW_KEY)

    with pytest.raises(ConfigurationError, match=words):
        check_public_key(public_key)


@pytest.mark.parametrize(
    "holder",
    [
        "",
        "0x1234",
        HOLDER[2:],
        HOLDER[:-1] + "9",
        HOLDER.replace("C8", "c8"),
        "0x" + 40 * "0",
        "node.eth\x1b[31m",
    ],
)
def test_check_account__unusable__is_refused_in_printable_words(holder: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^owner: expected") as caught:
        check_account(holder)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("address", [HOLDER, HOLDER.lower(), "0x" + HOLDER[2:].upper()])
def test_check_account__with_and_without_a_checksum__is_checksummed(address: str) -> None:
    assert check_account(address) == HOLDER


@pytest.mark.parametrize("name", OTHER_CONTRACTS)
def test_check_no_contract_of_ours__one_of_the_record__is_named(name: str) -> None:
    check_no_contract_of_ours(RECORD, HOLDER, "holder")
    address = check_account("0x" + OTHER_CONTRACTS[name].hex())

    with pytest.raises(ConfigurationError, match=f"an account that can act, got {name} itself"):
        check_no_contract_of_ours(RECORD, address, "holder")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "node.example",
        "ftp://node.example",
        "javascript:alert(1)",
        "https://",
        "https:///path",
        "https://node.example:99999",
        "https://node.example:0",
        "https://[::1",
        "https://node.example@evil.example",
        "https://evil.example\\@node.example",
        "https://node.example/" + HTTP_ADDRESS_MAXIMUM * "a",
        "https://node.example/\x1b[2J",
        "https://node.example/\nrow",
        "https://node.example/\x7f",
        "https://node.example/\x9b31m",
        "https://node.example /",
        "https://\u202eelpmaxe.edon",
        "https://n\u043ede.example",
        "\thttps://node.example",
    ],
)
def test_check_http_address__not_a_plain_url__is_refused_in_printable_words(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^http address: expected") as caught:
        check_http_address(url)
    assert str(caught.value).isprintable()
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:5050", "https://node.example", "https://[::1]:8080/api?x=1", "HTTPS://A.b"],
)
def test_check_http_address__plain_url__is_accepted(url: str) -> None:
    check_http_address(url)


def test_check_http_address__as_long_as_the_registry_takes__is_accepted() -> None:
    check_http_address(URL + "/" + (HTTP_ADDRESS_MAXIMUM - len(URL) - 1) * "a")

    with pytest.raises(ConfigurationError, match=r"at most 512 bytes, got 513 characters"):
        check_http_address(URL + "/" + (HTTP_ADDRESS_MAXIMUM - len(URL)) * "a")


def test_node_facts__strangers_address__is_escaped() -> None:
    data = eth_abi.encode(["bytes"], [b"http://a\x1b[2J\xff"])
    url = eth_abi.decode(["bytes"], data)[0].decode("utf-8", "surrogateescape")

    facts = node_facts(RegisteredNode(Node(100, NEW_KEY, url, True), HOLDER))

    assert facts["http address"] == "http://a\\x1b[2J\\udcff"
