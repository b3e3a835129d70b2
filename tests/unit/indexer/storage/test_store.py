import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, delete, update

from chainkit.errors import StoreError, StoreInUse
from chainkit.protocol.payload_contract import EventLayout, PayloadContract
from chainkit.types import BlockHeader
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import first_sequence_id_from
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.migrate import REVISION
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import IndexedBlock
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, malformed
from support.indexer.fake_node import FakeNode

IDENTITY = Identity.of(FakeChain().deployment, b"\x04" + bytes(64))


def with_layout(identifier_length: int) -> tuple[PayloadContract, ...]:
    first, *others = IDENTITY.contracts
    return (replace(first, layout=EventLayout(identifier_length)), *others)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.db"


def test_open__no_database__makes_it_and_opens_it_again(path: Path) -> None:
    Store.open(str(path), IDENTITY).close()
    store = Store.open(f"sqlite:///{path}", IDENTITY)

    assert store.identity == IDENTITY
    assert store.position() is None
    store.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chain_id": 1}, "expected chain id 1, got 31337"),
        ({"genesis_hash": b"\x01" * 32}, "expected genesis hash 0x0101"),
        ({"node_public_key": b"\x04" + b"\x01" * 64}, "expected node public key 0x040101"),
        ({"contracts": IDENTITY.contracts[:1]}, "expected contracts contract 1 0x0101"),
        ({"contracts": with_layout(16)}, r"MessageSent\(bytes16.*got .*MessageSent\(bytes32"),
        ({"first_block": 2}, "expected first block 2, got 3"),
    ],
)
def test_open__database_of_another__says_what_differs_and_changes_nothing(
    path: Path, change: dict[str, Any], message: str
) -> None:
    Store.open(str(path), IDENTITY).close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match=message):
        Store.open(str(path), replace(IDENTITY, **change))

    assert path.read_bytes() == before


def test_open__database_that_begins_below_the_record__is_taken(path: Path) -> None:
    Store.open(str(path), IDENTITY).close()
    contracts = tuple(replace(each, block=each.block + 2) for each in IDENTITY.contracts)
    later = replace(IDENTITY, first_block=IDENTITY.first_block + 2, contracts=contracts)

    store = Store.open(str(path), later)

    assert store.identity == IDENTITY
    store.close()


def test_open__another_programs_database__changes_nothing(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="expected an indexer's tables, got bookmarks"):
        Store.open(str(path), IDENTITY)

    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_open__file_that_is_no_database__changes_nothing(path: Path) -> None:
    path.write_text("dear diary, " * 100)

    with pytest.raises(StoreError, match="file is not a database"):
        Store.open(str(path), IDENTITY)

    assert path.read_text() == "dear diary, " * 100


@pytest.mark.parametrize("existing", [False, True])
def test_open__made_by_a_newer_program__names_both_revisions(path: Path, existing: bool) -> None:
    Store.open(str(path), IDENTITY).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()

    with pytest.raises(StoreError, match=f"{REVISION} or older, got 9999"):
        Store.open_existing(str(path)) if existing else Store.open(str(path), IDENTITY)


def test_open__killed_between_tables_and_identity__goes_on(path: Path) -> None:
    Store.open(str(path), IDENTITY).close()
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM identity")
    connection.execute("DELETE FROM contracts")
    connection.commit()
    connection.close()

    with pytest.raises(StoreError, match="expected an indexer's tables"):
        Store.open_existing(str(path))
    Store.open(str(path), IDENTITY).close()
    Store.open_existing(str(path)).close()


def test_open__second_indexer__is_refused_until_the_first_ends(path: Path) -> None:
    first = Store.open(str(path), IDENTITY)

    with pytest.raises(StoreInUse):
        Store.open(str(path), IDENTITY)
    with pytest.raises(StoreInUse):
        Store.open_to_repair(str(path))
    Store.open_existing(str(path)).close()
    first.close()
    Store.open_to_repair(str(path)).close()


def rows_of(blocks: list[int], originator_id: int = 0) -> list[dict[str, Any]]:
    """A row for each sequence id from 1 on, in the given blocks."""
    return [
        {
            "originator_id": originator_id,
            "sequence_id": sequence_id,
            "block_number": block,
            "block_hash": b"",
            "transaction_hash": b"",
            "transaction_index": 0,
            "log_index": 0,
        }
        for sequence_id, block in enumerate(blocks, 1)
        if block % 7
    ]


@given(blocks=st.lists(st.integers(1, 60)).map(sorted), wanted=st.integers(0, 62))
def test_first_sequence_id_from__any_rows__is_the_smallest_at_or_above(
    blocks: list[int], wanted: int
) -> None:
    rows = rows_of(blocks)
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        schema.envelope_logs.create(connection)
        for table_rows in (rows, rows_of([3, 9], originator_id=1)):
            if table_rows:
                connection.execute(schema.envelope_logs.insert(), table_rows)
        found = first_sequence_id_from(connection, schema.envelope_logs, 0, wanted)
    engine.dispose()

    expected = [row["sequence_id"] for row in rows if row["block_number"] >= wanted]
    assert found == min(expected, default=None)


def test_open__killed_before_the_tables_were_made__makes_them(path: Path) -> None:
    path.touch()

    Store.open(str(path), IDENTITY).close()

    Store.open_existing(str(path)).close()


def test_open__folder_that_does_not_exist__names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no folder"):
        Store.open(str(tmp_path / "missing" / "node.db"), IDENTITY)

    assert list(tmp_path.iterdir()) == []


def test_open__path_of_a_folder__is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected a file, got a folder"):
        Store.open(str(tmp_path), IDENTITY)


def test_open_existing__no_file__leaves_none_behind(path: Path) -> None:
    with pytest.raises(StoreError, match="expected a file that exists, got none"):
        Store.open_existing(str(path))

    assert not path.exists()


POSTS = [[Post("a")], [malformed("b")], [Post("c")], [Post("d")]]


def followed(path: Path, window_blocks: int) -> FakeNode:
    chain = FakeChain()
    chain.mine(*POSTS)
    node = FakeNode(chain, path, window_blocks)
    node.catch_up()
    return node


def position_of(node: FakeNode) -> IndexedBlock:
    position = node.store.position()
    assert position is not None
    return position


@pytest.fixture
def half_final(path: Path) -> Iterator[FakeNode]:
    """A node of which the first two of four payloads are final, the second in quarantine."""
    node = followed(path, window_blocks=2)
    assert node.store.final_block() == FIRST_BLOCK + 1
    yield node
    node.store.close()


def claim(node: FakeNode, sequence_ids: str) -> None:
    """Let the known blocks say which payloads lie above them."""
    with node.store.writing() as connection:
        connection.execute(update(schema.blocks).values(sequence_ids=sequence_ids))


@pytest.mark.parametrize("claimed", [0, 1])
def test_retract__known_blocks_claim_that_final_rows_lie_above__changes_nothing(
    half_final: FakeNode, claimed: int
) -> None:
    claim(half_final, f'{{"0": {claimed}}}')
    _, ancestor, position = half_final.store.blocks(FIRST_BLOCK + 3)

    with half_final.refusing(StoreError, rf"above the final block 4 .*sequence id {claimed + 1} "):
        half_final.store.retract(position, ancestor)


def test_retract__to_an_ancestor_below_the_final_block__changes_nothing(
    half_final: FakeNode,
) -> None:
    final, *_, position = half_final.store.blocks(FIRST_BLOCK + 3)
    ancestor = replace(final, header=replace(final.header, number=final.header.number - 1))

    with half_final.refusing(StoreError, r"above the final block 4 .*those above block 3"):
        half_final.store.retract(position, ancestor)


def test_retract__below_the_final_block_as_told__makes_the_ancestor_known_and_final(
    half_final: FakeNode,
) -> None:
    final, *_, position = half_final.store.blocks(FIRST_BLOCK + 3)
    below = BlockHeader(FIRST_BLOCK, final.header.parent_hash, b"\1" * 32, 1)
    ancestor = IndexedBlock(below, {0: 1})

    assert half_final.store.retract(position, ancestor, below_final=True) == (1, 3)

    assert position_of(half_final) == half_final.store.block(FIRST_BLOCK) == ancestor
    assert half_final.store.final_block() == FIRST_BLOCK
    assert half_final.store.block(FIRST_BLOCK + 1) is None


def test_retract__everything_was_taken_back_meanwhile__changes_nothing(path: Path) -> None:
    node = followed(path, window_blocks=16)
    *_, ancestor, position = node.store.blocks(FIRST_BLOCK + 3)
    node.store.retract_all(position)
    before = node.content()

    with pytest.raises(StoreError, match=r"expected the cursor at block .*, got none"):
        node.store.retract(position, ancestor)
    with pytest.raises(StoreError, match=r"expected the cursor at block .*, got none"):
        node.store.retract_all(position)

    assert node.content() == before
    node.store.close()


def test_retract__to_the_final_block__takes_back_all_that_is_not_final(
    half_final: FakeNode,
) -> None:
    final, *_, position = half_final.store.blocks(FIRST_BLOCK + 3)

    assert half_final.store.retract(position, final) == (1, 2)

    assert half_final.store.final_block() == FIRST_BLOCK + 1
    assert [entry[1] for entry in half_final.journal()] == [3, 4]


def test_retract_all__nothing_final__begins_anew_and_knows_the_payloads_again(
    tmp_path: Path,
) -> None:
    node = followed(tmp_path / "node.db", window_blocks=16)
    oldest, *_, position = node.store.blocks(position_of(node).header.number)
    node.chain.fork(node.chain.head.number - 1, [], [Post("a")], [Post("c")], [malformed("b")])

    assert node.store.retract_all(position) == (1, 4)

    assert node.store.position() is None
    assert (node.rows(schema.cursor), node.rows(schema.blocks)) == ([], [])
    (reorg,) = node.rows(schema.reorgs)
    assert reorg == (
        1, oldest.header.number - 1, oldest.header.parent_hash,
        position.header.number, position.header.hash, len(POSTS) + 1, None,
    )  # fmt: skip
    assert {outcome for *_, outcome, _ in node.journal()} == {"dropped"}
    node.catch_up()
    clean = FakeNode(node.chain, tmp_path / "clean.db")
    clean.catch_up()
    of_chain = (schema.envelopes, schema.envelope_logs, schema.quarantine)
    for table in (*of_chain, schema.blocks, schema.cursor):
        assert node.rows(table) == clean.rows(table)
    assert node.journal() == [
        (1, 1, "kept", None),
        (1, 2, "moved", 3),
        (1, 3, "moved", 2),
        (1, 4, "dropped", None),
    ]
    node.store.close()
    clean.store.close()


def test_retract_all__something_final__changes_nothing(half_final: FakeNode) -> None:

    with half_final.refusing(StoreError, r"above the final block 4 .*those from block 4 on"):
        half_final.store.retract_all(position_of(half_final))


def test_retract_all__final_blocks_were_lost__changes_nothing(half_final: FakeNode) -> None:
    position = position_of(half_final)
    with half_final.store.writing() as connection:
        others = schema.blocks.c.number < position.header.number
        connection.execute(delete(schema.blocks).where(others))

    with half_final.refusing(StoreError, r"above the final block 4 .*sequence id 1 "):
        half_final.store.retract_all(position)


def test_retract_all__cursor_moved__changes_nothing(path: Path) -> None:
    node = followed(path, window_blocks=16)
    position = position_of(node)
    node.chain.mine([])
    node.catch_up()

    with node.refusing(StoreError, "expected the cursor at"):
        node.store.retract_all(position)
    node.store.close()


def test_retract_all__oldest_known_block_is_block_0__changes_nothing(path: Path) -> None:
    node = followed(path, window_blocks=16)
    with node.store.writing() as connection:
        oldest = schema.blocks.c.number == FIRST_BLOCK - 1
        connection.execute(update(schema.blocks).where(oldest).values(number=0))

    with node.refusing(StoreError, "those from block 0 on"):
        node.store.retract_all(position_of(node))
    node.store.close()
