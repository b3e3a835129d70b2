from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eth_abi import encode

from chainkit.signatures import SigningKey, keccak256
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.command_line import run

from .conftest import Node, publish

STRANGER = SigningKey(b"\x77" * 32)


def status(node: Node, *options: str) -> Any:
    chain = ("--rpc", node.chain.url, "--deployment", str(node.chain.record_path))
    done = run("index", "status", "--database", node.database, *chain, *options)
    assert done.code == 0, done.err
    return done.content if "--json" in options else done.out


def disable(chain: LocalChain, node_id: int) -> None:
    selector = keccak256(b"updateHealth(uint256,bool)")[:4]
    data = selector + encode(["uint256", "bool"], [node_id, False])
    chain.send(chain.record.node_registry.address, data, REGISTRY_OWNER)


def test_status__with_registry__says_who_is_enabled_and_sees_the_change(
    node: Node, local_chain: LocalChain
) -> None:
    own = local_chain.add_node(dev_address(5), node.key.public_key, "https://own.example.org")
    other = local_chain.add_node(dev_address(6), STRANGER.public_key, "https://other.example.org")
    publish(local_chain, 1)
    node.catch_up()

    before = status(node, "--json")["registry"]
    disable(local_chain, other)
    after = status(node, "--json")["registry"]

    assert (before["node_id"], before["status"]) == (own, "enabled")
    assert before["enabled_nodes"] == [own, other]
    assert after["enabled_nodes"] == [own]
    assert f"node {own} is enabled; enabled nodes: {own}" in status(node)


def test_status__key_that_is_not_registered__says_so(node: Node, local_chain: LocalChain) -> None:
    publish(local_chain, 1)
    node.catch_up()

    assert status(node, "--json")["registry"]["node_id"] is None
    assert "this key is not registered; enabled nodes: none" in status(node)


def record_by_hand(chain: LocalChain, registry: Any) -> dict[str, Any]:
    """A record of the same contracts, written by hand."""
    record = json.loads(chain.record_path.read_text())
    contracts = record.pop("contracts")
    events = {"GroupMessages": "MessageSent", "IdentityUpdates": "IdentityUpdateCreated"}
    return record | {
        "payload_contracts": [
            place(contracts[name])
            | {"name": name, "originator_id": 0, "event": f"{event}(bytes32,bytes,uint64)"}
            for name, event in events.items()
        ],
        "counters": {"0": place(contracts["OriginatorSequence"]) | {"function": "last()"}},
        "node_registry": registry,
    }


def place(contract: dict[str, Any]) -> dict[str, Any]:
    return {name: contract[name] for name in ("address", "block")}


def test_status__record_written_by_hand__names_its_registry_or_goes_without(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    own = local_chain.add_node(dev_address(5), node.key.public_key, "https://own.example.org")
    node.catch_up()
    path = tmp_path / "by-hand.json"
    registry = place(json.loads(local_chain.record_path.read_text())["contracts"]["NodeRegistry"])
    elsewhere = registry | {"chain_id": 7, "genesis_hash": "0x" + "77" * 32}
    options = ("--rpc", node.chain.url, "--deployment", str(path))

    told = []
    for each in (registry, None, elsewhere):
        path.write_text(json.dumps(record_by_hand(local_chain, each)))
        done = run("index", "status", "--database", node.database, *options)
        told.append(done.out if done.code == 0 else done.err)

    assert f"node {own} is enabled; enabled nodes: {own}" in told[0]
    assert "registry" not in told[1]
    assert "behind       0 blocks" in told[1]
    assert "expected a registry on the chain of --rpc, got one on chain 7" in told[2]


def test_status__deployment_without_endpoint__is_refused(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    record = str(local_chain.record_path)

    done = run("index", "status", "--database", node.database, "--deployment", record)

    assert done.code == 2
    assert "--deployment needs --rpc" in done.err
