"""An inbox's updates on the chain: a search goes on behind the last one, or a reorg undid it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chainkit.contracts.followed import FollowedDeployment
from chainkit.types import TopicKind
from chainkit_client.network import posted as posted_module
from chainkit_client.network.chain import Chain
from chainkit_client.network.posted import PostedUpdates
from chainkit_client.storage import posted as storage
from chainkit_client.storage import schema
from chainkit_client.storage.store import Store
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, update
from support.chains.sealed import seal
from support.endpoints.fake_endpoint import FakeProvider
from support.message_proofs import RECORD

ANN, BEN = update("ann"), update("ben")


class Searched:
    """A chain that takes note of the ranges that are searched; one newest block may be undone."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(posted_module, "REORG_BLOCKS", 1)
        self.chain = FakeChain()
        self.chain.tamper = self._note
        self.ranges: list[tuple[int, int]] = []
        seen = Chain(self.chain.endpoint, self.chain.record, frozenset({0}))
        self.posted = PostedUpdates(seen, store, lambda: 1)

    def _note(self, method: str, params: list[Any], result: Any) -> Any:
        if method != "eth_getLogs":
            return result
        query = params[0]
        self.ranges.append((int(query["fromBlock"], 16), int(query["toBlock"], 16)))
        return [each for each in result if each["address"] in query["address"]]

    def of_ann(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of ann's updates, and what was searched for them."""
        self.ranges.clear()
        found = self.posted.of(ANN.identifier)
        assert set(found.values()) <= {ANN.payload}
        return sorted(number for _, number in found), self.ranges[:]


@pytest.fixture
def searched(store: Store, monkeypatch: pytest.MonkeyPatch) -> Searched:
    return Searched(store, monkeypatch)


def test_of__one_inbox__are_those_that_nodes_serve_of_the_newest_blocks(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posted_module, "MOST_BLOCKS", 2)
    searched.chain.mine([ANN], [ANN, BEN], [replace(ANN, is_valid=False), Post("group")])

    assert searched.of_ann() == ([2], [(4, 5)])


def test_of__asked_again__searches_behind_the_block_that_is_settled(searched: Searched) -> None:
    searched.chain.mine([ANN], [ANN, BEN], [ANN])

    assert searched.of_ann() == ([1, 2, 4], [(FIRST_BLOCK, 5)])
    searched.chain.mine([ANN])
    assert searched.of_ann() == ([1, 2, 4, 5], [(5, 6)])
    assert searched.of_ann() == ([1, 2, 4, 5], [(6, 6)])


def test_of__reorg_of_the_newest_block__shows_what_the_chain_has_now(searched: Searched) -> None:
    searched.chain.mine([ANN], [BEN], [ANN])
    assert searched.of_ann() == ([1, 3], [(FIRST_BLOCK, 5)])

    searched.chain.fork(1, [BEN], [ANN])

    assert searched.of_ann() == ([1, 4], [(5, 6)])


def test_of__reorg_that_is_deeper__searches_all_again(searched: Searched) -> None:
    searched.chain.mine([ANN], [ANN], [])
    assert searched.of_ann() == ([1, 2], [(FIRST_BLOCK, 5)])

    searched.chain.fork(2, [BEN], [])

    assert searched.of_ann() == ([1], [(FIRST_BLOCK, 5)])


def test_of__more_bytes_than_are_stored__searches_all_again(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MOST_BYTES", 2 * len(ANN.payload))
    searched.chain.mine([ANN], [ANN], [])
    searched.of_ann()
    searched.chain.mine([ANN], [])
    assert searched.of_ann() == ([1, 2, 3], [(5, 7)])
    assert searched.of_ann() == ([1, 2, 3], [(FIRST_BLOCK, 7)])


def test_of__many_inboxes__some_are_stored_and_nothing_names_them(
    searched: Searched, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MOST_INBOXES", 2)
    searched.chain.mine([ANN], [])

    for each in (ANN, BEN, update("cat")):
        searched.posted.of(each.identifier)

    with store.reading() as connection:
        rows = connection.execute(schema.posted_updates.select()).all()
    assert len(rows) == 2
    for tag, found, _ in rows:
        for secret in (ANN.identifier, ANN.payload, ANN.payload.hex().encode()):
            assert secret not in tag + found


def test_of__contract_indexes_inbox_ids__asks_for_one_alone(store: Store) -> None:
    asked: list[Any] = []

    def logs(query: dict[str, Any]) -> list[Any]:
        asked.append(query["topics"])
        return []

    followed = FollowedDeployment.of(RECORD)
    layout = replace(followed.contracts[0].layout, is_identifier_indexed=True)
    contracts = tuple(replace(each, layout=layout) for each in followed.contracts)
    record = replace(followed, contracts=contracts)
    head = seal(9, bytes(32), 1_700_000_009, []).answer(False)
    answers = {
        "eth_getLogs": logs,
        "eth_getBlockByNumber": lambda block, is_whole: head if block == "latest" else None,
    }
    chain = Chain(FakeProvider(answers).endpoint(), record, frozenset({0}))

    inbox_id = b"\x17" * 32
    assert PostedUpdates(chain, store, lambda: 1).of(inbox_id) == {}

    [contract] = [each for each in contracts if each.kind is TopicKind.IDENTITY_UPDATE]
    assert asked == [[["0x" + contract.topic.hex()], ["0x" + inbox_id.hex()]]]
