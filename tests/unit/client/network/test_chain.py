"""The chain behind an endpoint: which blocks it still has, and what it has of an inbox."""

from __future__ import annotations

from typing import Any

from chainkit.types import BlockReference
from chainkit_client.network.chain import Chain
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
