import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, delete, insert, select, update

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import ChainError, InconsistentAnswer, StoreError
from chainkit.protocol.envelope import (
    originator_envelope,
    parse_originator_envelope,
    sign_originator_envelope,
)
from chainkit.signatures import SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.types import LOG_COLUMNS
from chainkit_indexer.verification.page_comparison import Difference
from chainkit_indexer.verification.verify import Verified, stored_range, verify_range
from support.chains.fake_chain import Block, FakeChain, Post, malformed
from support.chains.fake_chain import update as identity_update
from support.indexer.fake_node import FakeNode

A, B, C, D = Post("a"), identity_update("b"), malformed("c"), Post("d")
FIRST, LAST = 3, 6
OTHER_KEY = SigningKey(b"\x09" * 32)


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.blocks = 0

    def differs(self, difference: Difference) -> None:
        self.differences.append(difference)

    def compared(self, blocks: int) -> None:
        self.blocks += blocks


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D])
    node = FakeNode(chain, tmp_path / "node.db")
    node.catch_up()
    yield node
    node.store.close()


def verify(
    node: FakeNode,
    first: int | None = None,
    last: int | None = None,
    page_blocks: int = 2,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Verified, Heard]:
    heard = Heard()
    pool = EndpointPool([node.chain.endpoint], clock=clock)
    blocks = stored_range(node.store, first, last)
    deployment = node.chain.deployment
    return verify_range(pool, node.store, deployment, blocks, heard, page_blocks), heard


def differences(node: FakeNode, **portions: Any) -> list[str]:
    found, heard = verify(node, **portions)
    assert found.differences == len(heard.differences)
    return [str(each) for each in heard.differences]


def change(node: FakeNode, table: Table, sequence_id: int, **values: Any) -> None:
    with node.store.writing() as connection:
        statement = update(table).where(table.c.sequence_id == sequence_id).values(**values)
        assert connection.execute(statement).rowcount == 1


def envelope(node: FakeNode, sequence_id: int) -> bytes:
    with node.store.reading() as connection:
        table = schema.envelopes.c
        query = select(table.envelope).where(table.sequence_id == sequence_id)
        return bytes(connection.execute(query).scalar_one())


@pytest.mark.parametrize("page_blocks", [1, 2, 100])
def test_verify__as_indexed__finds_no_difference(node: FakeNode, page_blocks: int) -> None:
    found, heard = verify(node, page_blocks=page_blocks)

    assert found == Verified(FIRST, LAST, envelopes=3, quarantined=1, differences=0)
    assert heard.blocks == LAST - FIRST + 1


def test_verify__any_database__is_only_read(node: FakeNode) -> None:
    change(node, schema.envelope_logs, 1, log_index=7)
    before = node.content()

    verify(node)

    assert node.content() == before


@pytest.mark.parametrize(
    ("column", "value", "got"),
    [
        ("block_number", 5, "5"),
        ("block_hash", b"\x01" * 32, "0x" + "01" * 32),
        ("transaction_hash", b"\x02" * 32, "0x" + "02" * 32),
        ("transaction_index", 9, "9"),
        ("log_index", 9, "9"),
        ("originator_ns", 1, "1"),
        ("topic", b"\x00\x03", "0x0003"),
        ("expires_at", 7, "7"),
    ],
)
def test_verify__column_of_an_envelope_changed__names_row_and_column(
    node: FakeNode, column: str, value: Any, got: str
) -> None:
    table = schema.envelope_logs if column in LOG_COLUMNS else schema.envelopes
    change(node, table, 2, **{column: value})

    [line] = differences(node)

    assert line.startswith(f"envelope 2 of originator 0: expected {column} ")
    assert line.endswith(f", got {got} (block 4, log 0)")


def resigned(stored: bytes) -> bytes:
    served = parse_originator_envelope(stored)
    unsigned, transaction = served.unsigned_originator_envelope, served.transaction_hash
    return sign_originator_envelope(unsigned, transaction, OTHER_KEY)


def with_other_content(stored: bytes) -> bytes:
    served = parse_originator_envelope(stored)
    unsigned = served.unsigned_originator_envelope + b"\x78\x01"
    return originator_envelope(unsigned, served.transaction_hash, served.node_signature)


def with_other_transaction(stored: bytes) -> bytes:
    served = parse_originator_envelope(stored)
    unsigned = served.unsigned_originator_envelope
    return originator_envelope(unsigned, b"\x05" * 32, served.node_signature)


def with_broken_signature(stored: bytes) -> bytes:
    served = parse_originator_envelope(stored)
    unsigned = served.unsigned_originator_envelope
    return originator_envelope(unsigned, served.transaction_hash, bytes(65))


@pytest.mark.parametrize(
    ("forge", "expected"),
    [
        (resigned, "expected signature of 0x04"),
        (with_broken_signature, "expected signature of 0x04"),
        (with_other_content, "expected signed content "),
        (with_other_transaction, "expected proof of transaction 0x"),
        (lambda stored: stored + b"\x78\x01", "expected envelope "),
        (lambda stored: b"\xff", "expected an OriginatorEnvelope"),
    ],
    ids=["other key", "no signature", "content", "transaction", "added field", "no envelope"],
)
def test_verify__envelope_bytes_changed__say_what_is_wrong(
    node: FakeNode, forge: Callable[[bytes], bytes], expected: str
) -> None:
    change(node, schema.envelopes, 4, envelope=forge(envelope(node, 4)))

    [line] = differences(node)

    assert line.startswith("envelope 4 of originator 0: " + expected)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("payload", b"\xff other"),
        ("identifier", b"\x01" * 32),
        ("contract", b"\x07" * 20),
        ("reason", "dislike"),
        ("log_index", 9),
    ],
)
def test_verify__column_of_a_quarantined_payload_changed__names_it(
    node: FakeNode, column: str, value: Any
) -> None:
    change(node, schema.quarantine, 3, **{column: value})

    [line] = differences(node)

    assert line.startswith(f"quarantined payload 3 of originator 0: expected {column} ")


@pytest.mark.parametrize(
    ("table", "sequence_id", "name"),
    [(schema.envelopes, 4, "envelope 4"), (schema.quarantine, 3, "quarantined payload 3")],
)
def test_verify__row_missing__is_told(
    node: FakeNode, table: Table, sequence_id: int, name: str
) -> None:
    with node.store.writing() as connection:
        connection.execute(delete(table).where(table.c.sequence_id == sequence_id))

    [line] = differences(node)

    assert line.startswith(f"{name} of originator 0: expected one, got none (block ")


def add_like_the_first(node: FakeNode, table: Table, originator_id: int, sequence_id: int) -> None:
    names = [column.name for column in table.columns]
    row = dict(zip(names, node.rows(table)[0], strict=True))
    added = row | {"originator_id": originator_id, "sequence_id": sequence_id}
    with node.store.writing() as connection:
        connection.execute(insert(table).values(added))


@pytest.mark.parametrize(
    ("originator_id", "sequence_id"), [(0, 3), (0, 5), (0, 0), (0, -1), (7, 1)]
)
def test_verify__row_too_many__is_told(
    node: FakeNode, originator_id: int, sequence_id: int
) -> None:
    for table in (schema.envelopes, schema.envelope_logs):
        add_like_the_first(node, table, originator_id, sequence_id)

    [line] = differences(node)

    name = f"envelope {sequence_id} of originator {originator_id}"
    assert line.startswith(f"{name}: expected none, got one (block ")


@pytest.mark.parametrize("table", [schema.envelopes, schema.envelope_logs])
@pytest.mark.parametrize("sequence_id", [3, 5, 0])
def test_verify__envelope_or_log_alone_too_many__is_told(
    node: FakeNode, table: Table, sequence_id: int
) -> None:
    add_like_the_first(node, table, 0, sequence_id)

    [line] = differences(node)

    assert line.startswith(f"envelope {sequence_id} of originator 0: expected none, got one (")


def test_verify__log_of_an_envelope_missing__is_told(node: FakeNode) -> None:
    logs = schema.envelope_logs
    with node.store.writing() as connection:
        connection.execute(delete(logs).where(logs.c.sequence_id == 2))

    assert differences(node) == [
        "envelope 2 of originator 0: expected its log, got none (block 4, log 0)"
    ]


def test_verify__known_block_of_another_branch__is_told(node: FakeNode) -> None:
    with node.store.writing() as connection:
        blocks = schema.blocks
        connection.execute(update(blocks).where(blocks.c.number == 4).values(hash=b"\x01" * 32))

    [line] = differences(node)

    assert line.startswith("known block: expected hash 0x")
    assert line.endswith(f", got 0x{'01' * 32} (block 4)")


def test_verify__cursor_counts_wrongly__is_told(node: FakeNode) -> None:
    with node.store.writing() as connection:
        blocks = schema.blocks
        wrong = update(blocks).where(blocks.c.number == LAST).values(sequence_ids='{"0": 9}')
        connection.execute(wrong)

    assert differences(node) == [
        'known block: expected sequence_ids {"0": 4}, got {"0": 9} (block 6)',
        "cursor: expected sequence ids {0: 4}, got {0: 9} (block 6)",
    ]


def test_verify__chain_has_another_branch_now__tells_every_row_that_it_left(
    node: FakeNode,
) -> None:
    node.chain.fork(1, [Post("x")])

    lines = differences(node)

    assert lines[0].startswith("known block: expected hash 0x")
    assert any(line.startswith("envelope 4 of originator 0: expected block_hash") for line in lines)


@pytest.mark.parametrize(
    ("first", "last", "envelopes", "quarantined"),
    [(4, 4, 1, 1), (5, 6, 1, 0), (None, 4, 2, 1), (6, None, 1, 0), (5, 5, 0, 0)],
)
def test_verify__part_of_the_chain__compares_that_part(
    node: FakeNode, first: int | None, last: int | None, envelopes: int, quarantined: int
) -> None:
    found, _ = verify(node, first, last)

    assert (found.envelopes, found.quarantined, found.differences) == (envelopes, quarantined, 0)


def test_verify__part_after_what_is_wrong__does_not_see_it(node: FakeNode) -> None:
    change(node, schema.envelope_logs, 1, log_index=7)

    assert differences(node, first=4) == []
    assert len(differences(node, last=4)) == 1


def test_verify__counter_has_no_old_state__goes_on_from_what_is_stored(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pruned(*_: Any) -> Any:
        raise LookupError("missing trie node")

    monkeypatch.setattr(node.chain, "_eth_call", pruned)

    found, _ = verify(node, first=5)

    assert (found.envelopes, found.differences) == (1, 0)


def test_verify__something_is_final__ends_there_unless_told_more(tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D])
    node = FakeNode(chain, tmp_path / "node.db", window_blocks=2)
    node.catch_up()

    assert stored_range(node.store, None, None) == (3, 4)
    assert stored_range(node.store, None, 6) == (3, 6)
    assert stored_range(node.store, 6, None) == (6, 6)
    node.store.close()


@pytest.mark.parametrize(("first", "last"), [(2, None), (None, 7), (5, 4)])
def test_verify__blocks_that_were_not_indexed__are_refused(
    node: FakeNode, first: int | None, last: int | None
) -> None:
    with pytest.raises(StoreError, match="a range within the indexed blocks 3 to 6"):
        stored_range(node.store, first, last)


def test_verify__nothing_indexed__says_so(tmp_path: Path) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db")

    with pytest.raises(StoreError, match="expected an indexed block, got none yet"):
        stored_range(node.store, None, None)

    node.store.close()


def test_verify__database_of_another_deployment__is_refused(node: FakeNode) -> None:
    chain = FakeChain()
    chain.blocks[0] = Block.of(0, b"\x01" * 32, (), 0, ())
    record = chain.record.__class__(
        31337, chain.blocks[0].hash, *chain.record.contracts, deployer=bytes(20)
    )
    other = FollowedDeployment.of(record)

    with pytest.raises(StoreError, match="expected genesis hash"):
        verify_range(EndpointPool([chain.endpoint]), node.store, other, (3, 6), Heard())


def test_verify__endpoint_cuts_a_page_once__is_asked_again(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit.chain.pool.time.sleep", lambda seconds: None)
    cut = [True]

    def lag(method: str, params: Any, result: Any) -> Any:
        if method == "eth_getLogs" and result and cut:
            cut.clear()
            return result[:-1]
        return result

    node.chain.tamper = lag

    assert differences(node) == []
    assert not cut


def test_verify__endpoint_never_answers_right__ends_with_what_it_said(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(
        "chainkit.chain.pool.time.sleep", lambda pause: seconds.append(seconds.pop() + pause)
    )
    node.chain.tamper = lambda method, _, result: [] if method == "eth_getLogs" else result

    with pytest.raises(ChainError) as caught:
        verify(node, clock=lambda: seconds[0])

    assert isinstance(caught.value, InconsistentAnswer)
    assert "sequence id" in str(caught.value)
