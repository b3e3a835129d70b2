from pathlib import Path

from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit_indexer.export import write_export
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Advanced, Idle, RolledBack
from support import payloads
from support.chains.chain import LocalChain

from .conftest import GROUP, Node, publish

INBOX = b"\x22" * 32


def publish_one_of_each(chain: LocalChain) -> None:
    chain.publish_message(GROUP, payloads.commit(GROUP))
    chain.publish_identity_update(INBOX, payloads.identity_update(INBOX))
    chain.publish_message(GROUP, b"\xff not an envelope")
    chain.publish_message(INBOX, payloads.commit(GROUP))
    chain.publish_message(GROUP, payloads.commit(GROUP, size=3000, seed=1))


def test_step__both_contracts__indexes_all_in_the_order_of_the_chain(
    node: Node, local_chain: LocalChain
) -> None:
    publish_one_of_each(local_chain)

    result = node.step()

    assert isinstance(result, Advanced)
    assert (result.envelopes, result.quarantined) == (3, 2)
    assert isinstance(node.step(), Idle)
    served = [parse_originator_envelope(row["envelope"]) for row in node.rows(schema.envelopes)]
    assert [envelope.sequence_id for envelope in served] == [1, 2, 5]
    assert {recover_node_key(envelope) for envelope in served} == {node.key.public_key}
    assert [row["reason"] for row in node.rows(schema.quarantine)] == [
        "not a ClientEnvelope",
        "target topic does not match",
    ]


def test_index__two_nodes_with_other_pages__hold_the_same_unsigned_bytes(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    for _ in range(3):
        publish_one_of_each(local_chain)
    first, second = Node(local_chain, tmp_path, 1), Node(local_chain, tmp_path, 2)
    first.catch_up(page_blocks=1)
    second.catch_up(page_blocks=200)

    envelopes = [
        [parse_originator_envelope(row["envelope"]) for row in node.rows(schema.envelopes)]
        for node in (first, second)
    ]
    unsigned = [[e.unsigned_originator_envelope for e in served] for served in envelopes]
    signatures = [[e.node_signature for e in served] for served in envelopes]
    assert len(unsigned[0]) == 9
    assert unsigned[0] == unsigned[1]
    assert all(a != b for a, b in zip(*signatures, strict=True))
    assert first.rows(schema.quarantine) == second.rows(schema.quarantine)


def test_step__anvil_reorg__keeps_moves_and_drops(node: Node, local_chain: LocalChain) -> None:
    publish(local_chain, 1)
    local_chain.pause_mining()
    sent = []
    for seed, sender in ((2, 3), (3, 4), (4, 5), (5, 6)):
        sent.append(local_chain.publish_message(GROUP, payloads.commit(GROUP, seed=seed), sender))
        local_chain.mine()
    kept, _, moved, last = [local_chain.raw_transaction(transaction) for transaction in sent]
    node.catch_up()
    local_chain.reorg(4, [(kept, 0), (moved, 1), (last, 3)])
    local_chain.mine()

    result = node.step()

    assert isinstance(result, RolledBack)
    assert (result.depth, result.retracted) == (4, 4)
    node.catch_up()
    journal = [(r["sequence_id"], r["outcome"], r["new_sequence_id"])
               for r in node.rows(schema.journal)]  # fmt: skip
    assert journal == [
        (2, "kept", None),
        (3, "dropped", None),
        (4, "moved", 3),
        (5, "moved", 4),
    ]
    clean = Node(local_chain, node.database.parent, 1)
    clean.database = clean.database.with_name("clean.db")
    clean.catch_up()
    assert node.payload_rows() == clean.payload_rows()


def test_step__anvil_rollback__waits_and_repairs_when_the_chain_goes_on(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 3)
    node.catch_up()
    before = node.payload_rows()
    local_chain.rewind(2)

    waiting = node.step()

    assert isinstance(waiting, Idle)
    assert waiting.head.number == waiting.cursor.number - 2
    assert node.payload_rows() == before
    publish(local_chain, 1, start=9)
    assert isinstance(node.step(), RolledBack)
    node.catch_up()
    assert [row["sequence_id"] for row in node.rows(schema.envelopes)] == [1, 2]


def test_export__two_databases_of_one_key__are_the_same_files(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish_one_of_each(local_chain)
    contents = []
    for number, page_blocks in enumerate((1, 200)):
        node.database = tmp_path / f"{number}.db"
        node.catch_up(page_blocks)
        store = Store.open_existing(str(node.database))
        write_export(store, tmp_path / f"export-{number}")
        store.close()
        files = [path for path in (tmp_path / f"export-{number}").rglob("*") if path.is_file()]
        contents.append({path.name: path.read_bytes() for path in files})

    assert contents[0] == contents[1]
