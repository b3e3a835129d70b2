"""`chainkit registry history` of a real registry, and of one behind an endpoint that lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from eth_abi import encode

from chainkit.signatures import address_of, keccak256
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address
from support.council.registry_commands import (
    KEYS,
    OPERATOR,
    OTHER_OPERATOR,
    URL,
    add_arguments,
    registry_command,
    sent_by,
)
from support.endpoints.fault_proxy import FaultProxy
from support.endpoints.faults import LOG_FAULTS, error, lagging_replica, range_limit

OWNER = dev_address(REGISTRY_OWNER)


@pytest.fixture
def chain(local_chain: LocalChain, tmp_path: Path) -> LocalChain:
    """Two nodes of which one moved and was disabled, and an operator who changed a URL."""
    sending = sent_by(tmp_path, REGISTRY_OWNER)
    for arguments in (
        add_arguments(KEYS[0]),
        add_arguments(KEYS[1], "https://b.example"),
        ["disable", 100],
        ["transfer", 200, "--holder", OTHER_OPERATOR],
        ["open-updates"],
    ):
        outcome = registry_command(local_chain, *arguments, *sending)
        assert outcome.code == 0, outcome.err
    update_url(local_chain, 100, "https://moved\x1b[2J.example")
    return local_chain


def update_url(chain: LocalChain, node_id: int, url: str) -> None:
    selector = keccak256(b"updateHttpAddress(uint256,string)")[:4]
    data = selector + encode(["uint256", "string"], [node_id, url])
    chain.send(chain.record.node_registry.address, data, sender=5)


def test_history__whole__tells_by_block_and_transaction_who_did_what(chain: LocalChain) -> None:
    outcome = registry_command(chain, "history")

    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 100
    assert outcome.out.replace("\n", "").isprintable()
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    told = [line for line in lines if line.startswith(("by", "node", "registry"))]
    assert told[1:] == [
        f"registry created, owned by {OWNER}",
        f"by {OWNER}",
        f"node 100 added, held by {OPERATOR}",
        f"node 100 enabled, key of {address_of(KEYS[0])}, at {URL}",
        f"by {OWNER}",
        f"node 200 added, held by {OPERATOR}",
        f"node 200 enabled, key of {address_of(KEYS[1])}, at https://b.example",
        f"by {OWNER}",
        "node 100 disabled",
        f"by {OWNER}",
        f"node 200 given to {OTHER_OPERATOR}",
        f"by {OWNER}",
        "registry operators' address updates opened",
        f"by {OPERATOR}",
        "node 100 HTTP address changed to https://moved\\x1b[2J.example",
    ]


def test_history__of_one_node_as_json__is_every_event_with_its_place(chain: LocalChain) -> None:
    content = registry_command(chain, "history", 200, "--json").content

    events = content["events"]
    assert [event["event"] for event in events] == [
        "Transfer",
        "NodeAdded",
        "NodeUpdated",
        "Transfer",
        "NodeTransferred",
    ]
    assert {event["node_id"] for event in events} == {200}
    assert events[1]["arguments"] == {"account": OWNER, "nodeId": 200, "holder": OPERATOR}
    assert events[2]["arguments"]["node"]["signingKeyPub"] == "0x" + KEYS[1].hex()
    receipt = chain.endpoint.receipt(bytes.fromhex(events[1]["transaction_hash"][2:]))
    assert receipt is not None
    assert receipt["blockHash"] == events[1]["block"]["hash"]
    assert int(receipt["logs"][1]["logIndex"], 16) == events[1]["log_index"]


def test_history__of_some_blocks__is_what_happened_in_them(chain: LocalChain) -> None:
    head = chain.head().number

    late = registry_command(chain, "history", "--from-block", head - 1, "--json").content
    early = registry_command(chain, "history", "--block", head - 3, "--json").content

    assert [event["account"] for event in late["events"]] == [OWNER, OPERATOR, None]
    assert [event["event"] for event in early["events"]][-2:] == [
        "NodeHealthUpdated",
        "NodeUpdated",
    ]


def test_history__after_a_reorg__holds_nothing_of_the_old_branch(chain: LocalChain) -> None:
    chain.reorg(2)

    content = registry_command(chain, "history", "--json").content

    assert content["events"][-1]["event"] == "NodeTransferred"
    assert content["block"]["hash"] == "0x" + chain.head().hash.hex()


def test_history__endpoint_gives_few_blocks_at_once__is_the_same(chain: LocalChain) -> None:
    refuse = error(-32602, "block range too large: 2 blocks at most")
    with FaultProxy(chain.url) as proxy:
        proxy.arm(range_limit("two", refuse, 2))
        outcome = registry_command(chain, "history", url=proxy.url)

    assert outcome.code == 0, outcome.err
    assert outcome.out == registry_command(chain, "history").out
    assert proxy.delivered.total() >= 1


def test_history__endpoint_lies_about_logs__is_refused_unless_it_is_the_truth(
    chain: LocalChain,
) -> None:
    truth, believed = registry_command(chain, "history").out, []
    with FaultProxy(chain.url) as proxy:
        for fault in LOG_FAULTS:
            proxy.arm(fault)
            outcome = registry_command(chain, "history", url=proxy.url)
            proxy.lift()
            assert outcome.code == 2 or outcome.out == truth
            believed += [] if outcome.code == 2 else [fault.name]

    # Here, the other branch is this one.
    assert believed == ["logs: of the other branch"]


@pytest.mark.parametrize("behind", ["eth_getLogs", "eth_getBlockByNumber"])
def test_history__replica_lags_behind_the_head__is_refused(chain: LocalChain, behind: str) -> None:
    with FaultProxy(chain.url) as proxy:
        proxy.arm(
            lagging_replica(1, frozenset({behind})), where=lambda call: "latest" not in call.params
        )
        outcome = registry_command(chain, "history", url=proxy.url)

    assert outcome.code == 2
    assert proxy.delivered.total() >= 1
