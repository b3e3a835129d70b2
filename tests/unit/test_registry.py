"""Reads, plans and their proof, over a registry in memory."""

from dataclasses import replace
from typing import Any

import eth_abi
import pytest

from chainkit.errors import (
    ConfigurationError,
    InconsistentAnswer,
    RefusedRequest,
    TransactionFailed,
)
from chainkit.registry import (
    PAGE_SIZE,
    Plan,
    RegisteredNode,
    check_http_address,
    execute_plan,
    node_facts,
    plan_add,
    plan_set_status,
    sign_plan,
)
from chainkit.signatures import keccak256
from chainkit.transactions import SignedTransaction
from chainkit.types import Node
from support.fake_endpoint import RpcError
from support.fake_registry import (
    ADDRESS,
    HOLDER,
    OWNER_ADDRESS,
    FakeRegistry,
    block,
    block_hash,
    entry,
    hexed,
    node_key,
    reverted,
    selector,
)

NEW_KEY = node_key(9).public_key
URL = "https://node.example"
SIGNED = SignedTransaction(b"\x02raw", keccak256(b"\x02raw"))
NODE_UPDATED = "0x" + keccak256(b"NodeUpdated(uint256,(bytes,string,bool))").hex()


def receipt(*logs: dict[str, Any], status: str = "0x1") -> dict[str, Any]:
    return {
        "transactionHash": "0x" + SIGNED.hash.hex(),
        "status": status,
        "to": "0x" + ADDRESS.hex(),
        "blockNumber": "0x14",
        "blockHash": "0x" + block_hash(20).hex(),
        "logs": list(logs),
    }


def updated_log(node: Node, address: bytes = ADDRESS) -> dict[str, Any]:
    return {
        "address": "0x" + address.hex(),
        "topics": [NODE_UPDATED],
        "data": hexed(["uint256", "(bytes,bytes,bool)"], node.node_id, entry(node)),
        "blockNumber": "0x14",
        "blockHash": "0x" + block_hash(20).hex(),
        "transactionHash": "0x" + SIGNED.hash.hex(),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
    }


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
    with pytest.raises(ConfigurationError, match=r"node 250: expected a registered node, got none"):
        fake.registry().node(250, block())


def test_find_node__refused_for_another_reason__is_not_an_unknown_node() -> None:
    fake = FakeRegistry(overrides={"getNode": RpcError(-32000, "missing trie node")})

    with pytest.raises(RefusedRequest, match="missing trie node"):
        fake.registry().find_node(100, block())


def test_plan_set_status__enabled_node__disables_and_nothing_else() -> None:
    fake = FakeRegistry()

    plan = plan_set_status(fake.registry(), block(), 100, False)

    assert (plan.function, plan.arguments) == ("updateHealth", {"tokenId": 100, "isHealthy": False})
    calldata = selector("updateHealth(uint256,bool)") + hexed(["uint256", "bool"], 100, False)[2:]
    assert "0x" + plan.calldata.hex() == calldata
    assert plan.calldata_hash == keccak256(plan.calldata)
    assert plan.difference == ("node 100 status: enabled -> disabled",)
    assert (plan.sender, plan.target, plan.block) == (OWNER_ADDRESS, ADDRESS, block())
    assert plan.gas == 60_000


def test_plan_add__new_key__shows_the_id_that_the_simulation_gave() -> None:
    plan = plan_add(FakeRegistry().registry(), block(), HOLDER.lower(), NEW_KEY, URL)

    assert plan.arguments == {"to": HOLDER, "signingKeyPub": NEW_KEY, "httpAddress": URL}
    assert plan.before is None
    assert plan.after == RegisteredNode(Node(400, NEW_KEY, URL, True), HOLDER)
    assert plan.difference == (
        "node 400 status: (none) -> enabled",
        f"node 400 holder: (none) -> {HOLDER}",
        f"node 400 http address: (none) -> {URL}",
        f"node 400 public key: (none) -> 0x{NEW_KEY.hex()}",
    )


@pytest.mark.parametrize(("node_id", "is_enabled"), [(100, True), (200, False)])
def test_plan_set_status__node_has_it_already__is_refused(node_id: int, is_enabled: bool) -> None:
    with pytest.raises(ConfigurationError, match=r"another status.*already"):
        plan_set_status(FakeRegistry().registry(), block(), node_id, is_enabled)


def test_plan_set_status__unknown_node__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="node 150: expected a registered node"):
        plan_set_status(FakeRegistry().registry(), block(), 150, True)


@pytest.mark.parametrize(
    ("public_key", "words"),
    [
        (NEW_KEY[:-1], "expected 65 bytes, got 64 bytes"),
        (b"", "got 0 bytes"),
        (b"\x03" + NEW_KEY[1:], "a point of secp256k1"),
        (NEW_KEY[:-1] + bytes([NEW_KEY[-1] ^ 1]), "a point of secp256k1"),
        (node_key(2).public_key, "the key of node 200"),
    ],
    ids=["short", "empty", "compressed prefix", "off the curve", "of a disabled node"],
)
def test_plan_add__unusable_key__is_refused_before_the_simulation(
    public_key: bytes, words: str
) -> None:
    fake = FakeRegistry(overrides={"addNode": AssertionError})

    with pytest.raises(ConfigurationError, match=words):
        plan_add(fake.registry(), block(), HOLDER, public_key, URL)


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
def test_plan_add__unusable_holder__is_refused(holder: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^owner: expected") as caught:
        plan_add(FakeRegistry().registry(), block(), holder, NEW_KEY, URL)
    assert str(caught.value).isprintable()


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


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            reverted("OwnableUnauthorizedAccount(address)", OWNER_ADDRESS),
            rf"OwnableUnauthorizedAccount\(account={OWNER_ADDRESS}\)",
        ),
        (reverted("SigningKeyAlreadyUsed(uint256)", 300), r"SigningKeyAlreadyUsed\(nodeId=300\)"),
        (RpcError(-32000, "out of gas"), "out of gas"),
    ],
)
def test_plan_add__simulation_reverts__is_told_in_the_contracts_words(
    answer: RpcError, words: str
) -> None:
    fake = FakeRegistry(overrides={"addNode": answer})

    with pytest.raises(RefusedRequest, match=f"simulation: expected no revert, got {words}"):
        plan_add(fake.registry(), block(), HOLDER, NEW_KEY, URL)


def test_sign_plan__another_key_than_the_owners__is_refused_and_nothing_is_asked() -> None:
    plan = plan_set_status(FakeRegistry().registry(), block(), 100, False)
    silent = FakeRegistry().registry(eth_call=AssertionError)

    with pytest.raises(ConfigurationError, match=f"the registry's owner {OWNER_ADDRESS}, got 0x"):
        sign_plan(silent, plan, 31337, bytes(31) + b"\x02")


def disabling(fake: FakeRegistry) -> Plan:
    return plan_set_status(fake.registry(), block(19), 100, False)


def executed(fake: FakeRegistry, plan: Plan, mined: dict[str, Any]) -> None:
    answers = {"eth_sendRawTransaction": None, "eth_getTransactionReceipt": mined}
    execute_plan(fake.registry(**answers), plan, SIGNED, 0)


def test_execute__receipt_event_and_state_as_planned__succeeds() -> None:
    fake = FakeRegistry()
    plan = disabling(fake)
    fake.set_status(100, False)

    executed(fake, plan, receipt(updated_log(plan.after.node)))

    pinned = {"blockHash": "0x" + block_hash(20).hex(), "requireCanonical": True}
    assert fake.pinned[-2:] == [pinned] * 2


def test_execute__status_0__fails_with_the_contracts_words() -> None:
    fake = FakeRegistry()
    plan = disabling(fake)
    fake.overrides["updateHealth"] = reverted("OwnableUnauthorizedAccount(address)", OWNER_ADDRESS)

    with pytest.raises(TransactionFailed, match=r"status 1, got a revert: OwnableUnauthorized"):
        executed(fake, plan, receipt(status="0x0"))


def test_execute__no_event_though_status_1__fails() -> None:
    fake = FakeRegistry()
    plan = disabling(fake)
    fake.set_status(100, False)
    strangers = updated_log(plan.after.node, address=bytes(20))
    unplanned = updated_log(replace(plan.after.node, node_id=200))

    for logs in ([], [strangers], [unplanned]):
        with pytest.raises(TransactionFailed, match="NodeUpdated with the planned node"):
            executed(fake, plan, receipt(*logs))


def test_execute__state_not_changed_though_event__fails() -> None:
    fake = FakeRegistry()
    plan = disabling(fake)

    with pytest.raises(TransactionFailed, match=r"'status': 'disabled'.*'status': 'enabled'"):
        executed(fake, plan, receipt(updated_log(plan.after.node)))


def test_node_facts__strangers_address__is_escaped() -> None:
    data = eth_abi.encode(["bytes"], [b"http://a\x1b[2J\xff"])
    url = eth_abi.decode(["bytes"], data)[0].decode("utf-8", "surrogateescape")

    facts = node_facts(RegisteredNode(Node(100, NEW_KEY, url, True), HOLDER))

    assert facts["http address"] == "http://a\\x1b[2J\\udcff"
