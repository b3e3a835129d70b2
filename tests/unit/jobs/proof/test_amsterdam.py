"""Blocks of Amsterdam: what is exported of them is proved, and their gas is no lie (EIP-7778)."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit_jobs.chain_export.fetch import BlockReader
from chainkit_jobs.chain_export.fetch import BlockRows as ReadRows
from chainkit_jobs.proof.block import BlockRows, Claims, check_block
from chainkit_jobs.proof.collector import Collector
from chainkit_jobs.proof.result import GapCode
from support.endpoints.fake_endpoint import FakeProvider
from support.vectors import case_name, from_hex, load

CHAIN_ID = 0x539
CASES = load("amsterdam_blocks")["cases"]

UNTOLD = (
    *("mix_hash", "parent_beacon_block_root", "requests_hash"),
    *("block_access_list_hash", "slot_number"),
)
"""Columns of a header that no import has."""


def checked(case: dict[str, Any], *untold: str) -> tuple[Collector, ReadRows]:
    block, receipts = case["block"] | {"transactions": case["transactions"]}, case["receipts"]
    answers = {"eth_getBlockByNumber": block, "eth_getBlockReceipts": receipts}
    number, block_hash = int(block["number"], 16), from_hex(block["hash"])
    [read] = BlockReader(FakeProvider(answers).endpoint(), CHAIN_ID).blocks([number])
    header = dict(read.block) | dict.fromkeys(untold)
    tables = [[header], list(read.transactions), list(read.receipts), list(read.logs)]

    claims = Claims(CHAIN_ID, bytes(32), number, number)
    return check_block(BlockRows(number, (block_hash,), *tables), claims), read


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_check__block_of_amsterdam_as_it_is_exported__is_proved_whole(case: dict[str, Any]) -> None:
    block, receipts = case["block"], case["receipts"]

    found, read = checked(case)

    assert int(block["gasUsed"], 16) != int(receipts[-1]["cumulativeGasUsed"], 16)
    # The transfer leaves a log of no contract (EIP-7708).
    assert [each["address"] for each in read.logs]
    assert list(found.problems) == []


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_check__block_of_amsterdam_as_it_is_imported__is_accused_of_nothing(
    case: dict[str, Any],
) -> None:
    found, _ = checked(case, *UNTOLD)

    assert list(found.problems) == []
    assert [gap.column for gap in found.gaps if gap.code == GapCode.HEADER] == ["mix_hash"]
