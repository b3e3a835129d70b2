"""Blocks of Amsterdam: what is exported of them is proved, and their gas is no lie (EIP-7778)."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit_jobs.chain_export.fetch import BlockReader
from chainkit_jobs.proof.block import BlockRows, Claims, check_block
from support.endpoints.fake_endpoint import FakeProvider
from support.vectors import case_name, from_hex, load

CHAIN_ID = 0x539
CASES = load("amsterdam_blocks")["cases"]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_check__block_of_amsterdam_as_it_is_exported__is_proved_whole(case: dict[str, Any]) -> None:
    block, receipts = case["block"] | {"transactions": case["transactions"]}, case["receipts"]
    answers = {"eth_getBlockByNumber": block, "eth_getBlockReceipts": receipts}
    number, block_hash = int(block["number"], 16), from_hex(block["hash"])
    [read] = BlockReader(FakeProvider(answers).endpoint(), CHAIN_ID).blocks([number])
    tables = [[read.block], list(read.transactions), list(read.receipts), list(read.logs)]

    found = check_block(
        BlockRows(number, (block_hash,), *tables), Claims(CHAIN_ID, bytes(32), number, number)
    )

    assert int(block["gasUsed"], 16) != int(receipts[-1]["cumulativeGasUsed"], 16)
    # The transfer leaves a log of no contract (EIP-7708).
    assert [each["address"] for each in read.logs]
    assert list(found.problems) == []
