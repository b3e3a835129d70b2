from dataclasses import replace

import pytest

from chainkit_jobs.reconcile.node_tables.journal import read_entry
from chainkit_jobs.reconcile.node_tables.journal_check import Entry, Held, check_journal
from support.audit.audit_exports import GROUP, Post, key_of
from support.audit.node_tables import journal_row
from support.payloads import commit

NODE = 100
TRANSACTION, OTHER = b"\x01" * 32, b"\x02" * 32
BASE = Entry(
    node_id=NODE,
    reorg_id=1,
    originator_id=0,
    sequence_id=5,
    transaction_hash=TRANSACTION,
    outcome="kept",
    new_sequence_id=None,
    payload_sha256="aa",
    digest=b"\x09" * 32,
)
HELD = Held(0, 5, TRANSACTION, "aa", block_number=10, log_index=1)


def problems(*entries: Entry, held: tuple[Held, ...] = (HELD,), last_block: int = 20) -> list[str]:
    found = check_journal(entries, held, {NODE: last_block, 200: last_block}, counter=9)
    return [row["detail"].partition(": ")[2] for row in found]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"payload_sha256": None}, None),
        ({"sequence_id": 4, "outcome": "moved", "new_sequence_id": 5}, None),
        ({"transaction_hash": OTHER, "outcome": "dropped"}, None),
        ({"payload_sha256": None, "outcome": "dropped"}, None),
        ({"payload_sha256": "bb", "outcome": "dropped"}, None),
        # The chain export does not hold sequence 6: it may lack it.
        ({"outcome": "moved", "new_sequence_id": 6}, None),
        ({"outcome": "dropped"}, "dropped, though block 10, log 1 holds it as sequence 5"),
        (
            {"transaction_hash": OTHER},
            f"kept, which in block 10, log 1 is of transaction 0x{TRANSACTION.hex()}",
        ),
        (
            {"payload_sha256": "bb"},
            "kept, which in block 10, log 1 is another payload of that transaction",
        ),
        (
            {"outcome": "moved", "new_sequence_id": 10},
            "moved to sequence 10, which the contracts never gave out",
        ),
        ({"sequence_id": 0}, "kept, which the contracts never gave out"),
        ({"originator_id": 1}, "kept, which the contracts never gave out"),
        ({"outcome": "moved"}, "moved, with new sequence None"),
        ({"outcome": "moved", "new_sequence_id": 5}, "moved, with new sequence 5"),
        ({"new_sequence_id": 6}, "kept, with new sequence 6"),
        ({"outcome": "lost"}, "expected kept, moved or dropped, got 'lost'"),
    ],
)
def test_judge__one_entry__is_held_against_the_chain(
    changes: dict[str, object], problem: str | None
) -> None:
    found = problems(replace(BASE, **changes))  # type: ignore[arg-type]

    assert found == ([] if problem is None else [problem])


def test_judge__counter_was_not_read__nothing_is_beyond_it() -> None:
    entry = replace(BASE, outcome="moved", new_sequence_id=10)

    assert check_journal([entry], [HELD], {NODE: 20}, counter=None) == []


def test_judge__retracted_again_by_a_later_reorg__only_the_later_entry_counts() -> None:
    first = replace(BASE, sequence_id=3, outcome="moved", new_sequence_id=4)
    second = replace(BASE, reorg_id=2, sequence_id=4, outcome="moved", new_sequence_id=5)
    before = Held(0, 4, OTHER, "cc", block_number=9, log_index=0)

    assert problems(first, second, held=(HELD, before)) == []
    assert problems(first, replace(second, reorg_id=1), held=(HELD, before)) != []


def test_judge__dropped_and_posted_after_the_nodes_last_block__is_right() -> None:
    dropped = replace(BASE, outcome="dropped")

    assert problems(dropped, last_block=9) == []
    assert problems(dropped, last_block=10) != []


def test_judge__one_transaction_posts_the_same_twice__each_payload_answers_one_entry() -> None:
    twice = (HELD, replace(HELD, sequence_id=6, log_index=2))
    kept, dropped = BASE, replace(BASE, sequence_id=6, outcome="dropped")

    assert problems(kept, dropped, held=(HELD,)) == []
    assert problems(kept, dropped, held=twice) == [
        "dropped, though block 10, log 2 holds it as sequence 6"
    ]


def test_judge__two_entries_of_one_sequence__are_one_finding_that_names_both() -> None:
    first = replace(BASE, outcome="lost")
    [row] = check_journal([replace(first, reorg_id=2), first], [HELD], {NODE: 20}, 9)

    lost = "expected kept, moved or dropped, got 'lost'"
    name = f"transaction 0x{TRANSACTION.hex()}"
    assert row["detail"] == f"reorg 1, {name}: {lost}; reorg 2, {name}: {lost}"
    assert (row["code"], row["node_id"], row["sequence_id"]) == ("JOURNAL_CONTRADICTS", NODE, 5)


def test_judge__two_nodes__are_judged_apart() -> None:
    kept, dropped = BASE, replace(BASE, node_id=200, outcome="dropped")

    assert len(problems(kept, dropped)) == 1


def test_read_entry__envelope__is_known_by_its_payload_and_digest() -> None:
    post = Post(5, 10, commit(GROUP))
    row = journal_row(post, key_of(NODE), "kept")
    same = journal_row(replace(post, sequence_id=6, block=11), key_of(200), "kept")

    read, moved = read_entry(dict(row)), read_entry(same)

    assert "envelope" not in read
    assert read["payload_sha256"] == moved["payload_sha256"]
    assert read["digest"] != moved["digest"]


@pytest.mark.parametrize("envelope", [None, b"\xff"])
def test_read_entry__no_envelope_that_can_be_read__is_known_by_its_transaction(
    envelope: bytes | None,
) -> None:
    row = journal_row(Post(5, 10, commit(GROUP)), key_of(NODE), "kept")

    read = read_entry(row | {"envelope": envelope})

    assert read.get("payload_sha256") is read.get("digest") is None
