"""Each code of the proof of a chain: what gives it, and only it."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from chainkit.signatures import SigningKey, keccak256
from chainkit_jobs.proof.block import Claims
from chainkit_jobs.proof.result import Counts, Gap, GapCode, ProblemCode
from support.audit_exports import Row, base_posts, registered
from support.chain_proofs import check_rows, claims_of, in_short, tally_of
from support.proved_chain import (
    Emitted,
    ProvedChain,
    Sent,
    every_kind,
    number_column,
    proved_chain,
    sent_of,
)

FIRST, LAST = 1, 6
KINDS = 3
"""The block with every kind of transaction; in the next are a rollup's."""

Rows = dict[str, list[Row]]


@cache
def _chain() -> ProvedChain:
    return proved_chain(every_kind(KINDS), FIRST, LAST)


def chain() -> ProvedChain:
    """A chain of one's own, to be changed."""
    return ProvedChain(copy.deepcopy(_chain().rows), {})


def row_of(rows: Rows, table: str, number: int, position: int = 0) -> Row:
    return [row for row in rows[table] if row[number_column(table)] == number][position]


def flipped(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


def change(table: str, number: int, position: int, **columns: Any) -> Callable[[Rows], None]:
    """Set columns of a row; a function makes the new value of the old one."""

    def apply(rows: Rows) -> None:
        row = row_of(rows, table, number, position)
        for name, value in columns.items():
            row[name] = value(row[name]) if callable(value) else value

    return apply


def remove(table: str, number: int, position: int) -> Callable[[Rows], None]:
    return lambda rows: rows[table].remove(row_of(rows, table, number, position))


def repeat(table: str, number: int, position: int) -> Callable[[Rows], None]:
    return lambda rows: rows[table].append(dict(row_of(rows, table, number, position)))


def remove_blocks(*numbers: int) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        for table, held in rows.items():
            held[:] = [row for row in held if row[number_column(table)] not in numbers]

    return apply


def swap_logs(rows: Rows) -> None:
    """The last log of one transaction for the first of the next: both say where they stand."""
    first, second = (row_of(rows, "logs", KINDS, position) for position in (1, 2))
    first["log_index"], second["log_index"] = second["log_index"], first["log_index"]


def other_block(rows: Rows) -> None:
    """Replace a block by another that is right in itself."""
    logs = (Emitted(data=b"another"),)
    sent = [replace(each, logs=logs) if each.logs else each for each in every_kind(KINDS)]
    before = _chain().hash_of(KINDS - 1)
    other = proved_chain(sent, KINDS, KINDS, before)
    remove_blocks(KINDS)(rows)
    for table, more in other.rows.items():
        rows[table] += more


@dataclass(frozen=True)
class Case:
    """A change, and the problems that it makes."""

    name: str
    tamper: Callable[[Rows], None]
    found: Sequence[tuple[Any, ...]]


CASES = [
    Case("a block is cut out", remove_blocks(4), [("BLOCK_MISSING", 4, "blocks", None, None)]),
    Case(
        "of a gap its ends are told",
        remove_blocks(2, 3, 4),
        [("BLOCK_MISSING", n, "blocks", None, None) for n in (2, 4)],
    ),
    Case("the first is cut off", remove_blocks(1), [("BLOCK_MISSING", 1, "blocks", None, None)]),
    Case(
        "the last are cut off",
        remove_blocks(5, 6),
        [("BLOCK_MISSING", n, "blocks", None, None) for n in (5, 6)],
    ),
    Case(
        "nothing is there",
        remove_blocks(*range(FIRST, LAST + 1)),
        [("BLOCK_MISSING", n, "blocks", None, None) for n in (1, 6)],
    ),
    Case(
        "a header is there twice",
        repeat("blocks", 2, 0),
        [("BLOCK_REPEATED", 2, "blocks", None, None)],
    ),
    Case(
        "a header field",
        change("blocks", 2, 0, timestamp=lambda value: value + 1),
        [("HEADER_HASH", 2, "blocks", None, None)],
    ),
    Case(
        "a header's hash",
        change("blocks", KINDS, 0, hash=flipped),
        [("HEADER_HASH", KINDS, "blocks", None, "hash")],
    ),
    Case(
        "a header's parent: what it was, the other blocks still say",
        change("blocks", 3, 0, parent_hash=flipped),
        [
            ("PARENT_LINK", 2, "blocks", None, "hash"),
            ("HEADER_HASH", 3, "blocks", None, None),
        ],
    ),
    Case("a block for another", other_block, [("PARENT_LINK", KINDS, "blocks", None, "hash")]),
    Case(
        "a count of transactions",
        change("blocks", 2, 0, transaction_count=1),
        [("TRANSACTION_COUNT", 2, "blocks", None, "transaction_count")],
    ),
    Case(
        "a row without a height",
        change("logs", KINDS, 6, block_number=None),
        [
            ("ROW_MALFORMED", None, "logs", None, "block_number"),
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
        ],
    ),
    Case(
        "a null that Parquet lets through",
        change("receipts", KINDS, 2, gas_used=None),
        [("ROW_MALFORMED", KINDS, "receipts", 2, "gas_used")],
    ),
    Case(
        "the block hash of a row",
        change("receipts", KINDS, 2, block_hash=flipped),
        [("BLOCK_HASH", KINDS, "receipts", 2, "block_hash")],
    ),
    Case(
        "a log in another block",
        change("logs", KINDS, 6, block_number=5),
        [
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
            ("ROW_MISSING", 5, "logs", 0, None),
            ("BLOCK_HASH", 5, "logs", 6, "block_hash"),
            ("ROW_UNEXPECTED", 5, "logs", 6, "transaction_index"),
            ("LOGS_BLOOM", 5, "logs", None, None),
            ("LOGS_BLOOM", 5, "logs", 6, "address"),
            ("LOGS_BLOOM", 5, "logs", 6, "topics"),
        ],
    ),
    Case(
        "a log outside of the range",
        change("logs", KINDS, 6, block_number=LAST + 1),
        [
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
            ("BLOCK_OUTSIDE", LAST + 1, "logs", None, None),
        ],
    ),
    Case(
        "a transaction field",
        change("transactions", KINDS, 2, nonce=9),
        [
            ("TRANSACTIONS_ROOT", KINDS, "transactions", None, None),
            ("TRANSACTION_HASH", KINDS, "transactions", 2, "transaction_hash"),
        ],
    ),
    Case(
        "a transaction's hash",
        change("transactions", KINDS, 2, transaction_hash=flipped),
        [("TRANSACTION_HASH", KINDS, "transactions", 2, "transaction_hash")],
    ),
    Case(
        "a transaction's sender",
        change("transactions", KINDS, 2, from_address=flipped),
        [("SENDER", KINDS, "transactions", 2, "from_address")],
    ),
    Case(
        "a column of another type",
        change("transactions", KINDS, 2, max_fee_per_gas=0),
        [("ROW_MALFORMED", KINDS, "transactions", 2, "max_fee_per_gas")],
    ),
    Case(
        "the chain of a transaction that is signed for any",
        change("transactions", KINDS, 1, chain_id=1),
        [("CHAIN_ID", KINDS, "transactions", 1, "chain_id")],
    ),
    Case(
        "a transaction is cut out",
        remove("transactions", KINDS, 1),
        [
            ("TRANSACTION_COUNT", KINDS, "blocks", None, "transaction_count"),
            ("TRANSACTIONS_ROOT", KINDS, "transactions", None, None),
            ("ROW_MISSING", KINDS, "transactions", 1, None),
            ("ROW_UNEXPECTED", KINDS, "receipts", 1, "transaction_index"),
        ],
    ),
    Case(
        "a transaction is there twice",
        repeat("transactions", KINDS, 1),
        [
            ("TRANSACTION_COUNT", KINDS, "blocks", None, "transaction_count"),
            ("ROW_REPEATED", KINDS, "transactions", 1, None),
        ],
    ),
    Case(
        "the last receipt is cut off",
        remove("receipts", KINDS, -1),
        [
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
            ("GAS_USED", KINDS, "receipts", 6, "cumulative_gas_used"),
            ("ROW_MISSING", KINDS, "receipts", 7, None),
        ],
    ),
    Case(
        "a receipt is there twice",
        repeat("receipts", KINDS, 3),
        [("ROW_REPEATED", KINDS, "receipts", 3, None)],
    ),
    Case(
        "a status",
        change("receipts", KINDS, 5, status=1),
        [
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
        ],
    ),
    Case(
        "cumulative gas: where it stands, two differences tell",
        change("receipts", KINDS, 5, cumulative_gas_used=lambda value: value + 1),
        [
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
            ("GAS_USED", KINDS, "receipts", 5, "gas_used"),
            ("GAS_USED", KINDS, "receipts", 6, "gas_used"),
        ],
    ),
    Case(
        "gas used",
        change("receipts", KINDS, 5, gas_used=1),
        [("GAS_USED", KINDS, "receipts", 5, "gas_used")],
    ),
    Case(
        "the address of a new contract",
        change("receipts", KINDS, 4, contract_address=flipped),
        [("CONTRACT_ADDRESS", KINDS, "receipts", 4, "contract_address")],
    ),
    Case(
        "a new contract where there is none",
        change("receipts", KINDS, 0, contract_address=b"\x01" * 20),
        [("CONTRACT_ADDRESS", KINDS, "receipts", 0, "contract_address")],
    ),
    Case(
        "the price",
        change("receipts", KINDS, 7, effective_gas_price=lambda value: value + 1),
        [("GAS_PRICE", KINDS, "receipts", 7, "effective_gas_price")],
    ),
    Case(
        "who a receipt says to have sent it",
        change("receipts", KINDS, 7, from_address=flipped),
        [("TRANSACTION_LINK", KINDS, "receipts", 7, "from_address")],
    ),
    Case(
        "the nonce of a deposit, to which only its receipt commits",
        change("transactions", KINDS + 1, 0, nonce=4),
        [("TRANSACTION_LINK", KINDS + 1, "transactions", 0, "nonce")],
    ),
    Case(
        "the transaction that a log names",
        change("logs", KINDS, 2, transaction_hash=flipped),
        [("TRANSACTION_LINK", KINDS, "logs", 2, "transaction_hash")],
    ),
    Case(
        "a log's data",
        change("logs", KINDS, 2, data=b"others"),
        [("RECEIPTS_ROOT", KINDS, "receipts", None, None)],
    ),
    Case(
        "a log's topic: the filter tells which one",
        change("logs", KINDS, 2, topics=[b"\x01" * 32, b"\x03" * 32]),
        [
            ("RECEIPTS_ROOT", KINDS, "receipts", None, None),
            ("LOGS_BLOOM", KINDS, "logs", None, None),
            ("LOGS_BLOOM", KINDS, "logs", 2, "topics"),
        ],
    ),
    Case(
        "a null among a log's topics",
        change("logs", KINDS, 2, topics=[None]),
        [("ROW_MALFORMED", KINDS, "logs", 2, "topics")],
    ),
    Case(
        "a place below the first",
        change("logs", KINDS, 0, log_index=-1),
        [
            ("ROW_MALFORMED", KINDS, "logs", -1, "log_index"),
            ("ROW_MISSING", KINDS, "logs", 0, None),
        ],
    ),
    Case(
        "two logs are swapped",
        swap_logs,
        [("LOG_ORDER", KINDS, "logs", 2, "transaction_index")],
    ),
]


def test_check__root_of_a_table_is_another__none_of_its_rows_are_proved() -> None:
    rows = chain().rows
    change("transactions", KINDS, 0, nonce=9)(rows)
    change("logs", KINDS + 1, 0, data=b"others")(rows)

    found = check_rows(rows, _chain().head_hash, claims_of(_chain()))

    assert found[KINDS].proved == Counts(1, 0, 8, 7)
    assert found[KINDS + 1].proved == Counts(1, 3, 0, 0)


def test_check__repeated_header__the_demanded_one_is_held_to() -> None:
    rows = chain().rows
    for number in (KINDS, KINDS + 1):
        for timestamp in (0, 2**62):
            wrong = {"timestamp": timestamp, "hash": b"\x01" * 32, "parent_hash": bytes(32)}
            rows["blocks"].append(row_of(rows, "blocks", number) | wrong)

    tally = tally_of(rows, _chain().head_hash, claims_of(_chain()))

    assert in_short(tally.problems) == [
        ("BLOCK_REPEATED", number, "blocks", None, None) for number in (KINDS, KINDS + 1)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_check__one_thing_changed__gives_its_codes_and_no_others(case: Case) -> None:
    rows = chain().rows
    case.tamper(rows)

    tally = tally_of(rows, _chain().head_hash, claims_of(_chain()))

    assert set(in_short(tally.problems)) == set(case.found)
    assert len(tally.problems) == len(case.found) == tally.problem_counts.total()


@pytest.mark.parametrize(
    ("tamper", "highest_break"),
    [
        (other_block, KINDS),
        (remove_blocks(4), 4),
        (repeat("blocks", 2, 0), 2),
        (change("blocks", 2, 0, timestamp=1), 2),
        (change("blocks", 2, 0, parent_hash=None), 2),
        # It is only said wrongly: the fields are what the next block demands.
        (change("blocks", 2, 0, hash=flipped), None),
        (change("transactions", KINDS, 0, nonce=1), None),
    ],
)
def test_check__header_is_not_the_demanded_one__chain_breaks_there(
    tamper: Callable[[Rows], None], highest_break: int | None
) -> None:
    rows = chain().rows
    tamper(rows)

    tally = tally_of(rows, _chain().head_hash, claims_of(_chain()))

    assert tally.highest_break == highest_break


@pytest.mark.parametrize(
    ("trusted", "about", "found"),
    [
        (b"\x01" * 32, {}, ("TRUSTED_HASH", LAST, "blocks", None, "hash")),
        (None, {"chain_id": 1}, ("CHAIN_ID", KINDS, "transactions", 0, "chain_id")),
    ],
)
def test_check__claim_is_another__is_told(
    trusted: bytes | None, about: Row, found: tuple[Any, ...]
) -> None:
    claims = claims_of(_chain(), **about)

    tally = tally_of(_chain().rows, trusted or _chain().head_hash, claims)

    assert in_short(tally.problems)[0] == found
    assert {code for code, *_ in in_short(tally.problems)} == {found[0]}


def test_check__genesis_is_another__is_told() -> None:
    young = proved_chain([], 0, 2, bytes(32))
    wrong, right = claims_of(young), claims_of(young, genesis_hash=young.hash_of(0))

    assert in_short(tally_of(young.rows, young.head_hash, wrong).problems) == [
        ("GENESIS_HASH", 0, "manifest", None, "genesis_hash")
    ]
    assert tally_of(young.rows, young.head_hash, right).problems == []


def test_check__all_codes__have_a_case() -> None:
    told = {code for case in CASES for code, *_ in case.found}

    assert told | {"TRUSTED_HASH", "CHAIN_ID", "GENESIS_HASH"} == set(ProblemCode)


def test_check__every_kind_of_transaction__is_proved() -> None:
    tally = tally_of(_chain().rows, _chain().head_hash, claims_of(_chain()))

    assert tally.problems == [] and tally.highest_break is None
    assert tally.proved == tally.held
    assert {row["type"] for row in _chain().rows["transactions"]} == {0, 1, 2, 3, 4, 0x7E}
    assert {gap.column for gap in tally.gaps} == {
        *("l1_fee", "l1_gas_used", "l1_gas_price", "l1_fee_scalar", "l1_base_fee_scalar"),
        *("l1_blob_base_fee", "l1_blob_base_fee_scalar"),
    }
    # Nine of eleven were signed, one of them for any chain.
    assert tally.chain_ids == 8


def test_check__posts_and_registry__are_proved() -> None:
    made = proved_chain(sent_of(base_posts(), [registered(100), registered(200, log_index=1)]))

    tally = tally_of(made.rows, made.head_hash, claims_of(made))

    assert tally.problems == [] and tally.proved == tally.held
    assert [row["transaction_hash"] for row in made.rows["logs"][2:]] == [
        made.transaction_of(post.sequence_id) for post in base_posts()
    ]


def gaps_of(rows: Rows, number: int, claims: Claims | None = None) -> dict[Gap, int]:
    checked = check_rows(rows, _chain().head_hash, claims or claims_of(_chain()))
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
    assert check_rows(rows, _chain().head_hash, claims_of(_chain()))[KINDS].proved.receipts == 8


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
    found = check_rows(rows, _chain().head_hash, claims_of(_chain()))[KINDS]
    assert ("SENDER", KINDS, "transactions", 0, "from_address") in in_short(found.problems)


def test_check__header_is_not_told__chain_breaks_there() -> None:
    rows = chain().rows
    change("blocks", KINDS, 0, mix_hash=None)(rows)

    assert gaps_of(rows, KINDS) == {Gap(GapCode.HEADER, "blocks", "mix_hash", ""): 1}
    assert tally_of(rows, _chain().head_hash, claims_of(_chain())).highest_break == KINDS


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
