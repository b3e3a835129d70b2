"""The proof of a chain lists what nothing in an export tells, and lets pass what may differ."""

import pytest

from chainkit.signatures import SigningKey, keccak256
from chainkit_jobs.proof.block import Claims
from chainkit_jobs.proof.result import Gap, GapCode, ProblemCode
from support.audit.chain_proofs import check_rows, claims_of, in_short, tally_of
from support.audit.proof_changes import (
    FIRST,
    KINDS,
    LAST,
    Rows,
    chain,
    change,
    every_kind_chain,
    row_of,
)
from support.chains.proved_chain import Sent, proved_chain


def gaps_of(rows: Rows, number: int, claims: Claims | None = None) -> dict[Gap, int]:
    checked = check_rows(
        rows, every_kind_chain().head_hash, claims or claims_of(every_kind_chain())
    )
    assert [each.problems for each in checked.values() if each.problems] == []
    layer_1 = {gap for gap in checked[number].gaps if (gap.column or "").startswith("l1_")}
    return {gap: rows for gap, rows in checked[number].gaps.items() if gap not in layer_1}


def test_check__signature_is_not_told__neither_it_nor_its_block_is_proved() -> None:
    rows = chain().rows
    change("transactions", KINDS, 2, v=None, r=None, s=None)(rows)

    assert gaps_of(rows, KINDS) == {
        Gap(GapCode.TRANSACTION, "transactions", "v", "type 0x1"): 1,
        Gap(GapCode.TRANSACTIONS_ROOT, "transactions", None, ""): 8,
    }
    assert (
        check_rows(rows, every_kind_chain().head_hash, claims_of(every_kind_chain()))[
            KINDS
        ].proved.receipts
        == 8
    )


def test_check__type_is_not_known__rest_of_the_block_is_proved() -> None:
    rows = chain().rows
    change("transactions", KINDS, 6, type=0x50)(rows)
    change("receipts", KINDS, 6, type=0x50)(rows)

    assert gaps_of(rows, KINDS) == {
        Gap(GapCode.TRANSACTION, "transactions", "type", "type 0x50"): 1,
        Gap(GapCode.TRANSACTIONS_ROOT, "transactions", None, ""): 8,
        Gap(GapCode.RECEIPT, "receipts", "type", "type 0x50"): 1,
        Gap(GapCode.RECEIPTS_ROOT, "receipts", None, ""): 8,
        Gap(GapCode.COLUMN, "receipts", "effective_gas_price", "type 0x50"): 1,
    }
    row_of(rows, "transactions", KINDS, 0)["from_address"] = b"\x01" * 20
    found = check_rows(rows, every_kind_chain().head_hash, claims_of(every_kind_chain()))[KINDS]
    assert ("SENDER", KINDS, "transactions", 0, "from_address") in in_short(found.problems)


def test_check__header_is_not_told__chain_breaks_there() -> None:
    rows = chain().rows
    change("blocks", KINDS, 0, mix_hash=None)(rows)

    assert gaps_of(rows, KINDS) == {Gap(GapCode.HEADER, "blocks", "mix_hash", ""): 1}
    assert (
        tally_of(rows, every_kind_chain().head_hash, claims_of(every_kind_chain())).highest_break
        == KINDS
    )


@pytest.mark.parametrize("column", ["sha3_uncles", "withdrawals_root", "requests_hash"])
def test_check__header_commits_to_what_is_not_exported__is_listed(column: str) -> None:
    made = proved_chain([], FIRST, LAST, **{column: b"\x01" * 32})

    tally = tally_of(made.rows, made.head_hash, claims_of(made))

    assert {gap: span.rows for gap, span in tally.gaps.items()} == {
        Gap(GapCode.CONTENT, "blocks", column, ""): LAST
    }


def test_check__deposit_from_before_canyon__its_nonce_is_listed() -> None:
    deposit = {"type": 0x7E, "sender": b"\xd0" * 20, "columns": {"nonce": 3}}
    made = proved_chain([Sent(2, **deposit, receipt={"deposit_nonce": 3})], FIRST, LAST)

    tally = tally_of(made.rows, made.head_hash, claims_of(made))

    assert tally.problems == []
    assert set(tally.gaps) == {
        Gap(GapCode.COLUMN, "receipts", "deposit_nonce", ""),
        Gap(GapCode.COLUMN, "transactions", "nonce", "type 0x7e"),
    }


def test_check__rules_of_arbitrum__price_is_listed() -> None:
    receipt = {"gas_used_for_l1": 1, "effective_gas_price": 1}
    made = proved_chain([Sent(2, receipt=receipt)], FIRST, LAST)

    tally = tally_of(made.rows, made.head_hash, claims_of(made))

    assert tally.problems == []
    assert {gap.column for gap in tally.gaps} == {"gas_used_for_l1", "effective_gas_price"}


def test_check__signature_of_a_proved_transaction_names_nobody__sender_is_listed() -> None:
    class HighS(SigningKey):
        __slots__ = ()

        def sign(self, digest: bytes) -> bytes:
            return super().sign(digest)[:32] + b"\xff" * 32 + b"\0"

    made = proved_chain([Sent(2, sender=HighS(keccak256(b"high")))], FIRST, LAST)

    tally = tally_of(made.rows, made.head_hash, claims_of(made))

    assert tally.problems == []
    assert [gap.column for gap in tally.gaps] == ["from_address"]


def test_check__failed_creation__may_tell_the_address_or_not() -> None:
    sent = [
        Sent(2, to=None, status=0),
        Sent(2, to=None, status=0, receipt={"contract_address": None}),
    ]
    made = proved_chain(sent, FIRST, LAST)

    assert tally_of(made.rows, made.head_hash, claims_of(made)).problems == []
    assert row_of(made.rows, "receipts", 2)["contract_address"] is not None


def test_check__wei_beyond_28_digits__are_exact() -> None:
    fees = {"max_fee_per_gas": 10**37 + 1, "max_priority_fee_per_gas": 10**37}
    price = {"effective_gas_price": 10**37 + 1}
    made = proved_chain([Sent(2, columns=fees, receipt=price)], FIRST, LAST)
    assert tally_of(made.rows, made.head_hash, claims_of(made)).problems == []

    made.rows["receipts"][0]["effective_gas_price"] -= 1
    found = tally_of(made.rows, made.head_hash, claims_of(made)).problems
    assert [problem.code for problem in found] == [ProblemCode.GAS_PRICE]
    assert found[0].expected == str(10**37 + 1)
