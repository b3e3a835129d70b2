"""Each problem that the proof of a chain tells: what gives its code, and only it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from chainkit_jobs.proof.result import Counts, ProblemCode
from chainkit_jobs.proof.tally import Tally
from support.audit.audit_exports import Row, base_posts, registered
from support.audit.chain_proofs import check_rows, claims_of, in_short, tally_of
from support.audit.proof_changes import (
    FIRST,
    KINDS,
    LAST,
    Rows,
    chain,
    change,
    every_kind_chain,
    flipped,
    other_block,
    remove,
    remove_blocks,
    repeat,
    row_of,
    swap_logs,
)
from support.chains.proved_chain import proved_chain, sent_of


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


def tally(rows: Rows) -> Tally:
    return tally_of(rows, every_kind_chain().head_hash, claims_of(every_kind_chain()))


def test_check__root_of_a_table_is_another__none_of_its_rows_are_proved() -> None:
    rows = chain().rows
    change("transactions", KINDS, 0, nonce=9)(rows)
    change("logs", KINDS + 1, 0, data=b"others")(rows)

    found = check_rows(rows, every_kind_chain().head_hash, claims_of(every_kind_chain()))

    assert found[KINDS].proved == Counts(1, 0, 8, 7)
    assert found[KINDS + 1].proved == Counts(1, 3, 0, 0)


def test_check__repeated_header__the_demanded_one_is_held_to() -> None:
    rows = chain().rows
    for number in (KINDS, KINDS + 1):
        for timestamp in (0, 2**62):
            wrong = {"timestamp": timestamp, "hash": b"\x01" * 32, "parent_hash": bytes(32)}
            rows["blocks"].append(row_of(rows, "blocks", number) | wrong)

    found = tally(rows)

    assert in_short(found.problems) == [
        ("BLOCK_REPEATED", number, "blocks", None, None) for number in (KINDS, KINDS + 1)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_check__one_thing_changed__gives_its_codes_and_no_others(case: Case) -> None:
    rows = chain().rows
    case.tamper(rows)

    found = tally(rows)

    assert set(in_short(found.problems)) == set(case.found)
    assert len(found.problems) == len(case.found) == found.problem_counts.total()


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

    found = tally(rows)

    assert found.highest_break == highest_break


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
    claims = claims_of(every_kind_chain(), **about)

    tally = tally_of(every_kind_chain().rows, trusted or every_kind_chain().head_hash, claims)

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
    found = tally(every_kind_chain().rows)

    assert found.problems == [] and found.highest_break is None
    assert found.proved == found.held
    assert {row["type"] for row in every_kind_chain().rows["transactions"]} == {0, 1, 2, 3, 4, 0x7E}
    assert {gap.column for gap in found.gaps} == {
        *("l1_fee", "l1_gas_used", "l1_gas_price", "l1_fee_scalar", "l1_base_fee_scalar"),
        *("l1_blob_base_fee", "l1_blob_base_fee_scalar"),
    }
    # Nine of eleven were signed, one of them for any chain.
    assert found.chain_ids == 8


def test_check__posts_and_registry__are_proved() -> None:
    made = proved_chain(sent_of(base_posts(), [registered(100), registered(200, log_index=1)]))

    tally = tally_of(made.rows, made.head_hash, claims_of(made))

    assert tally.problems == [] and tally.proved == tally.held
    assert [row["transaction_hash"] for row in made.rows["logs"][2:]] == [
        made.transaction_of(post.sequence_id) for post in base_posts()
    ]
