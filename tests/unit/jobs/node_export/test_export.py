"""The folder of a node's answers: it grows, whoever is killed, and holds what was answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from chainkit.errors import InconsistentAnswer, StoreError
from chainkit.exports import files_of
from chainkit_jobs.node_export import export as module
from chainkit_jobs.node_export.api import NodeApi
from chainkit_jobs.node_export.export import Exported, export_node
from chainkit_jobs.node_export.pinning import Chain
from support.audit.answering_node import AnsweringNode, StoringNode, parsed
from support.audit.audit_exports import base_posts
from support.audit.identities import key_of
from support.audit.small_export import write_export
from support.chains.answered_chain import RECORD, AnsweredChain
from support.exports import read_manifest

KEY, OTHER = key_of(100), key_of(200)
POSTS = base_posts()
SERVED = {post.sequence_id: post.envelope(KEY) for post in POSTS}
HEAD = 19

Ask = Callable[[bytes], bytes]


class HeadedChain(AnsweredChain):
    """Knows its head, and has given out ``counter`` sequences there."""

    def __init__(self, counter: int = 8, head: int = HEAD, **changes: Any) -> None:
        super().__init__({}, head, **changes)
        self.counters = dict.fromkeys(range(head + 100), counter)

    def block_at(self, height: str, is_whole: bool = False) -> Any:
        return super().block_at(hex(self.head) if height == "latest" else height, is_whole)


def export(
    node: Ask, out: Path, chain: HeadedChain | None = None, page_rows: int = 3, **options: Any
) -> Exported:
    def sleep(seconds: float) -> None:
        """Nobody waits in a test."""

    beside = Chain((chain or HeadedChain()).endpoint(), RECORD, sleep)
    return export_node(NodeApi("node.example", node, page_rows, sleep), beside, out, **options)


def rows_of(folder: Path) -> list[tuple[int, bytes]]:
    """Sequence and envelope of each row; the manifest's files are proved."""
    names = files_of(read_manifest(folder, "node"), "envelopes")
    rows = [row for name in names for row in pq.read_table(folder / name).to_pylist()]
    assert {row["originator_id"] for row in rows} <= {0}
    return [(int(row["sequence_id"]), row["envelope"]) for row in rows]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_ROWS", 3)


def test_export_node__several_pages__holds_all_that_was_answered_and_pins_the_head(
    tmp_path: Path,
) -> None:
    node = StoringNode(SERVED)
    seen: list[tuple[int, int]] = []

    exported = export(node, tmp_path, progress=lambda *at: seen.append(at))

    assert rows_of(tmp_path) == list(SERVED.items())
    assert [request.after for request in node.requests] == [0, 3, 6]
    manifest = read_manifest(tmp_path, "node")
    assert manifest == exported.manifest
    assert (manifest.from_block, manifest.to_block) == (RECORD.first_block, HEAD)
    assert manifest.to_block_hash == HeadedChain().block_hash(HEAD)
    assert (manifest.answered_to, manifest.node_public_key) == (8, "0x" + KEY.public_key.hex())
    assert (exported.new_envelopes, seen) == (8, [(3, 8), (6, 8), (8, 8)])


def test_export_node__counter_is_never_reached__ends_with_an_empty_answer(tmp_path: Path) -> None:
    node = StoringNode(SERVED)

    exported = export(node, tmp_path, HeadedChain(counter=9))

    assert [request.after for request in node.requests] == [0, 3, 6, 8]
    assert exported.manifest.answered_to == 8


def test_export_node__nothing_is_answered__an_empty_export(tmp_path: Path) -> None:
    exported = export(StoringNode({}), tmp_path)

    assert rows_of(tmp_path) == []
    assert (exported.manifest.answered_to, exported.manifest.node_public_key) == (0, None)


@pytest.mark.usefixtures("small_parts")
def test_export_node__killed_anywhere__goes_on_from_what_is_stored(tmp_path: Path) -> None:
    for last in range(1, 4):
        node, out = StoringNode(SERVED), tmp_path / str(last)

        def dying(data: bytes, node: Ask = node, last: int = last) -> bytes:
            if len(node.requests) == last:  # type: ignore[attr-defined]
                raise KeyboardInterrupt
            return node(data)

        if last < 3:
            with pytest.raises(KeyboardInterrupt):
                export(dying, out)
            # All that is there is an export already.
            assert read_manifest(out, "node").answered_to == 3 * last

        again = StoringNode(SERVED)
        export(again, out)

        assert rows_of(out) == list(SERVED.items())
        if last < 3:
            assert again.requests[0].after == 3 * last


def test_export_node__node_went_on__only_what_is_new_is_asked_for(tmp_path: Path) -> None:
    export(StoringNode({n: SERVED[n] for n in range(1, 6)}), tmp_path, HeadedChain(5, head=15))
    node = StoringNode(SERVED)

    exported = export(node, tmp_path, HeadedChain(8))

    assert [request.after for request in node.requests] == [5, 8]
    assert exported.new_envelopes == 3
    assert rows_of(tmp_path) == list(SERVED.items())
    assert exported.manifest.to_block == HEAD


def test_export_node__strange_envelopes__are_kept_as_they_were_answered(tmp_path: Path) -> None:
    foreign = b"\xff no envelope"
    pages = [[SERVED[2], foreign, SERVED[1]], [SERVED[4], SERVED[2]], []]

    export(AnsweringNode(pages), tmp_path)

    assert rows_of(tmp_path) == [
        (2, SERVED[2]),
        (3, foreign),
        (1, SERVED[1]),
        (4, SERVED[4]),
        (2, SERVED[2]),
    ]


def test_export_node__answer_leads_no_further__is_an_error_with_what_came_before_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_ROWS", 2)
    node = AnsweringNode([[SERVED[1], SERVED[2]], [SERVED[1]]])

    with pytest.raises(InconsistentAnswer, match="behind sequence 2, got 1 at or below it"):
        export(node, tmp_path)

    assert rows_of(tmp_path) == [(1, SERVED[1]), (2, SERVED[2])]


@pytest.mark.usefixtures("small_parts")
def test_export_node__node_invents_for_ever__one_part_of_it_is_kept(tmp_path: Path) -> None:
    class Inventive:
        asked = 0

        def __call__(self, data: bytes) -> bytes:
            self.asked += 1
            after = parsed(data).after
            return StoringNode(
                {
                    n: replace(POSTS[0], sequence_id=n).envelope(KEY)
                    for n in range(after + 1, after + 9)
                }
            )(data)

    node = Inventive()

    exported = export(node, tmp_path, HeadedChain(counter=4))

    assert (node.asked, exported.manifest.answered_to) == (2, 6)


def test_export_node__endpoint_lags_behind_the_node__is_given_time(tmp_path: Path) -> None:
    chain = HeadedChain(counter=5, head=15)

    def catch_up(seconds: float) -> None:
        chain.head, chain.counters = HEAD, dict.fromkeys(range(100), 8)

    node = NodeApi("node.example", StoringNode(SERVED))
    exported = export_node(node, Chain(chain.endpoint(), RECORD, catch_up), tmp_path)

    assert exported.manifest.to_block == HEAD


def test_export_node__reorg_since__begins_no_export_of_two_branches(tmp_path: Path) -> None:
    export(StoringNode({1: SERVED[1]}), tmp_path, HeadedChain(1, head=15))

    with pytest.raises(StoreError, match=r"expected block 15 .*, got .* \(a reorg: ask the node"):
        export(StoringNode(SERVED), tmp_path, HeadedChain(8, forked_from=15))

    assert read_manifest(tmp_path, "node").answered_to == 1


@pytest.mark.usefixtures("small_parts")
def test_export_node__reorg_between_two_answers__keeps_only_what_came_before(
    tmp_path: Path,
) -> None:
    chain, node = HeadedChain(8), StoringNode(SERVED)

    def reorged(data: bytes) -> bytes:
        if len(node.requests) == 1:
            chain.head, chain.forked_from = HEAD + 1, HEAD
        return node(data)

    with pytest.raises(StoreError, match="a reorg: ask the node again"):
        export(reorged, tmp_path, chain)

    assert rows_of(tmp_path) == [(number, SERVED[number]) for number in (1, 2, 3)]


def test_export_node__reorg_of_a_block_that_is_newer_than_the_first_answer__is_noticed(
    tmp_path: Path,
) -> None:
    chain, node = HeadedChain(8), StoringNode(SERVED)

    def mined_and_reorged(data: bytes) -> bytes:
        chain.head = HEAD + 2
        chain.forked_from = HEAD + 1 if node.requests else None
        return node(data)

    with pytest.raises(StoreError, match="a reorg"):
        export(mined_and_reorged, tmp_path, chain)


def test_export_node__reorg_after_the_last_answer__is_noticed_before_it_is_published(
    tmp_path: Path,
) -> None:
    chain = HeadedChain(8)

    def reorg(cursor: int, counter: int) -> None:
        chain.forked_from = HEAD

    with pytest.raises(StoreError, match="a reorg"):
        export(StoringNode(SERVED), tmp_path, chain, page_rows=1_000, progress=reorg)

    assert not (tmp_path / "manifest.json").exists()


def test_export_node__another_node_at_the_address__is_refused(tmp_path: Path) -> None:
    export(StoringNode({1: SERVED[1], 2: SERVED[2]}), tmp_path)
    other = {post.sequence_id: post.envelope(OTHER) for post in POSTS}

    with pytest.raises(StoreError, match=f"its key 0x{KEY.public_key.hex()}, got"):
        export(StoringNode(other), tmp_path)


def test_export_node__one_signature_is_altered__the_key_is_that_of_the_others(
    tmp_path: Path,
) -> None:
    served = SERVED | {1: POSTS[0].envelope(OTHER)}

    exported = export(StoringNode(served), tmp_path)

    assert exported.manifest.node_public_key == "0x" + KEY.public_key.hex()


def test_export_node__two_keys_sign_alike__none_is_named(tmp_path: Path) -> None:
    exported = export(StoringNode({1: SERVED[1], 2: POSTS[1].envelope(OTHER)}), tmp_path)

    assert exported.manifest.node_public_key is None


def test_export_node__folder_of_an_operators_export__is_refused(tmp_path: Path) -> None:
    write_export(tmp_path)

    with pytest.raises(
        StoreError, match="an export of a node's answers, got one that its operator"
    ):
        export(StoringNode(SERVED), tmp_path)


def test_export_node__folder_of_another_deployment__is_refused(tmp_path: Path) -> None:
    export(StoringNode(SERVED), tmp_path)
    other = Chain(HeadedChain().endpoint(), replace(RECORD, chain_id=2))

    with pytest.raises(StoreError, match="expected chain_id 2, got 1"):
        export_node(NodeApi("node.example", StoringNode(SERVED)), other, tmp_path)


def test_export_node__sequence_ids__are_exact(tmp_path: Path) -> None:
    highest = 2**64 - 1
    node = AnsweringNode([[replace(POSTS[0], sequence_id=highest).envelope(KEY)], []])

    assert export(node, tmp_path).manifest.answered_to == highest
    [(found, _)] = rows_of(tmp_path)
    assert Decimal(found) == highest
