"""The chain behind an endpoint: which blocks it still has, and what it has of an inbox."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chainkit.contracts.followed import FollowedDeployment
from chainkit.protocol.payload_contract import EventLayout
from chainkit.types import BlockReference, TopicKind
from chainkit_client.network import chain as chain_module
from chainkit_client.network.chain import Chain
from support.chains.fake_chain import FakeChain, Post, update
from support.chains.sealed import BareTransaction, seal
from support.endpoints.fake_endpoint import FakeProvider
from support.message_proofs import RECORD

BLOCKS = {
    number: seal(number, bytes(32), 1_700_000_000 + number, [BareTransaction("one")])
    for number in (7, 8)
}


def block_at(height: str, is_whole: bool) -> Any:
    found = BLOCKS.get(int(height, 16))
    return None if found is None else found.answer(is_whole)


def test_still_there__some_blocks__are_those_with_the_hash_that_the_chain_has() -> None:
    provider = FakeProvider({"eth_getBlockByNumber": block_at})
    chain = Chain(provider.endpoint(), RECORD, frozenset({0}))
    there = BlockReference(7, BLOCKS[7].hash)
    replaced, above = BlockReference(8, b"\x08" * 32), BlockReference(9, b"\x09" * 32)

    assert chain.still_there([above, there, replaced, there]) == {there}
    # However many they are, they are asked for at once.
    assert len(provider.requests) == 1


def of_the_contract(method: str, params: list[Any], result: Any) -> Any:
    if method != "eth_getLogs":
        return result
    return [each for each in result if each["address"] in params[0]["address"]]


def test_posted_updates__of_one_inbox__are_those_that_nodes_serve_of_the_newest_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    posted, other = update("ann"), update("ben")
    broken = replace(posted, is_valid=False)
    chain = FakeChain()
    chain.mine([posted, other], [broken], [Post("group")], [posted])
    chain.tamper = of_the_contract
    seen = Chain(chain.endpoint, chain.record, frozenset({0}))
    payload = posted.payload

    assert seen.posted_updates(posted.identifier) == {(0, 1): payload, (0, 5): payload}
    monkeypatch.setattr(chain_module, "MOST_BLOCKS", 2)
    assert seen.posted_updates(posted.identifier) == {(0, 5): payload}


def test_posted_updates__contract_indexes_inbox_ids__asks_for_one_alone() -> None:
    asked: list[Any] = []

    def logs(query: dict[str, Any]) -> list[Any]:
        asked.append(query["topics"])
        return []

    followed = FollowedDeployment.of(RECORD)
    layout = EventLayout(is_identifier_indexed=True, is_sequence_indexed=True)
    contracts = tuple(replace(each, layout=layout) for each in followed.contracts)
    record = replace(followed, contracts=contracts)
    head = seal(9, bytes(32), 1_700_000_009, []).answer(False)
    provider = FakeProvider({"eth_getLogs": logs, "eth_getBlockByNumber": head})

    inbox_id = b"\x17" * 32
    chain = Chain(provider.endpoint(), record, frozenset({0}))
    assert chain.posted_updates(inbox_id) == {}

    [contract] = [each for each in contracts if each.kind is TopicKind.IDENTITY_UPDATE]
    assert asked == [[["0x" + contract.topic.hex()], ["0x" + inbox_id.hex()]]]
