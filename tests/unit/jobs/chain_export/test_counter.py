"""Payload logs are held to the contracts' own counter, at every end that is published."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import InconsistentAnswer
from chainkit.exports import Manifest, load_manifest
from chainkit_jobs.chain_export.export import export_chain
from support.chains.answered_chain import RECORD, AnsweredChain
from support.endpoints.fake_endpoint import RpcError

BEFORE, END = 2, 6
NO_STATE = RpcError(-32000, "missing trie node 00")


def run(
    chain: AnsweredChain, out: Path, end: int = END, first_block: int = 3, **options: Any
) -> Manifest:
    endpoint, last = chain.endpoint(), chain.reference(end)
    return export_chain(endpoint, RECORD, first_block, last, out, **options).manifest


def test_export_chain__payloads_fill_the_counter__both_numbers_stand_in_the_manifest(
    tmp_path: Path,
) -> None:
    manifest = run(AnsweredChain({4: 8, 6: 9}, counters={BEFORE: 7}), tmp_path / "chain")

    assert (manifest.sequence_before, manifest.sequence_after) == (7, 9)
    assert (manifest.first_block, manifest.first_payload_block) == (1, 2)
    assert (manifest.kind, manifest.source, manifest.range_blocks) == ("chain", "json-rpc", 10_000)


def test_export_chain__begins_below_the_counters_deployment__begins_with_0(tmp_path: Path) -> None:
    chain = AnsweredChain({4: 1}, counters={1: RpcError(3)})

    manifest = run(chain, tmp_path / "chain", first_block=2)

    assert (manifest.sequence_before, manifest.sequence_after) == (0, 1)


def test_export_chain__ends_below_the_counters_deployment__ends_with_0(tmp_path: Path) -> None:
    chain = AnsweredChain(counters={1: RpcError(3)})

    manifest = run(chain, tmp_path / "chain", end=1, first_block=0)

    assert (manifest.sequence_before, manifest.sequence_after) == (0, 0)


@pytest.mark.parametrize(
    ("posts", "message"),
    [
        ({}, "expected all up to sequence id 9, got up to 7"),
        ({4: 8}, "expected all up to sequence id 9, got up to 8"),
        ({6: 9}, r"expected sequence id 8, got 9 \(block 6, log 0\)"),
        ({4: 8, 5: 8, 6: 9}, r"expected sequence id 9, got 8 \(block 5, log 0\)"),
        ({4: 9, 6: 8}, "expected sequence id 8, got 9"),
        ({4: 8, 5: 9, 6: 10}, "expected all up to sequence id 9, got up to 10"),
    ],
    ids=["none", "last cut", "first cut", "repeated", "swapped", "one too many"],
)
def test_export_chain__payloads_contradict_the_counter__is_refused_and_leaves_nothing(
    tmp_path: Path, posts: dict[int, int], message: str
) -> None:
    with pytest.raises(InconsistentAnswer, match=message):
        run(AnsweredChain(posts, counters={BEFORE: 7, END: 9}), tmp_path / "chain")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", [RpcError(3), "0x", "0x07", 2**64, NO_STATE], ids=str)
@pytest.mark.parametrize("number", [BEFORE, END], ids=["before", "after"])
def test_export_chain__no_counter_is_answered__is_refused_and_leaves_nothing(
    tmp_path: Path, answer: Any, number: int
) -> None:
    counters = {BEFORE: 7, END: 8, number: answer}

    with pytest.raises(InconsistentAnswer, match="counter at"):
        run(AnsweredChain({4: 8}, counters=counters), tmp_path / "chain")

    assert list(tmp_path.iterdir()) == []


def interrupted(chain: AnsweredChain, out: Path, blocks: int) -> Manifest:
    """Export in ranges of two, and die after so many blocks."""
    fetched = 0

    def progress(more: int, _: int) -> None:
        nonlocal fetched
        fetched += more
        if fetched > blocks:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(chain, out, range_blocks=2, progress=progress)
    return load_manifest(out, "chain")


@pytest.mark.parametrize(
    ("counters", "told"), [({}, 1), ({5: NO_STATE}, None)], ids=["kept", "not kept"]
)
def test_export_chain__end_of_a_range__tells_the_counter_where_its_state_is_kept(
    tmp_path: Path, counters: Mapping[int, Any], told: int | None
) -> None:
    manifest = interrupted(AnsweredChain({5: 1, 6: 2}, counters=counters), tmp_path, blocks=3)

    assert (manifest.to_block, manifest.sequence_after) == (5, told)


def test_export_chain__counter_contradicts_a_range__nothing_of_it_is_published(
    tmp_path: Path,
) -> None:
    chain = AnsweredChain({4: 1, 6: 2}, counters={5: 2})

    with pytest.raises(InconsistentAnswer, match="all up to sequence id 2, got up to 1"):
        run(chain, tmp_path, range_blocks=2)

    assert load_manifest(tmp_path, "chain").to_block == 3


POSTED = [{4: 1, 5: 2, 6: 3}, {4: 1, 6: 2}, {6: 1}, {}]


@pytest.mark.parametrize("posts", POSTED, ids=str)
@pytest.mark.parametrize("counters", [{}, {5: NO_STATE, 3: NO_STATE}], ids=["kept", "not kept"])
def test_export_chain__goes_on_behind_a_range__continues_the_sequence(
    tmp_path: Path, posts: dict[int, int], counters: Mapping[int, Any]
) -> None:
    chain = AnsweredChain(posts, counters=counters)
    interrupted(chain, tmp_path, blocks=3)
    # Nobody keeps it for ever: what the first run was told is enough.
    chain.counters = {**counters, BEFORE: NO_STATE}

    manifest = run(chain, tmp_path)

    assert (manifest.sequence_before, manifest.sequence_after) == (0, len(posts))


@pytest.mark.parametrize("counters", [{}, {5: NO_STATE}], ids=["kept", "not kept"])
def test_export_chain__first_payload_behind_a_range_is_missing__is_refused(
    tmp_path: Path, counters: Mapping[int, Any]
) -> None:
    chain = AnsweredChain({4: 1, 6: 2, 7: 3}, counters=counters)
    interrupted(chain, tmp_path, blocks=3)
    chain.posts = {4: 1, 7: 3}
    # The posts are hidden, the counter is not.
    chain.counters = {**counters, 7: 3}

    with pytest.raises(InconsistentAnswer, match="expected sequence id 2, got 3"):
        run(chain, tmp_path, end=7)

    assert load_manifest(tmp_path, "chain").to_block == 5
