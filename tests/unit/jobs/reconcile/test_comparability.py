from pathlib import Path
from typing import Any

import pytest

from chainkit.exports import Manifest
from chainkit.types import Node
from chainkit_jobs.reconcile.comparability import NodeExport, compare_ranges
from chainkit_jobs.sources import Export
from support.audit.audit_exports import hash_of, key_of

NODE = Node(100, key_of(100).public_key, "https://node100.example", True)


def export(kind: str = "node", **changes: Any) -> Export:
    about = {
        "kind": kind,
        "chain_id": 1,
        "genesis_hash": "0x00",
        "contracts": {},
        "from_block": 10,
        "to_block": 50,
        "files": {},
        "node_public_key": "0x" + key_of(100).public_key.hex(),
    } | changes
    about.setdefault("to_block_hash", "0x" + hash_of(about["to_block"]).hex())
    return Export(Path(kind), Manifest(**about), "digest")


@pytest.mark.parametrize(
    ("node", "sentences"),
    [
        ({}, []),
        ({"to_block_hash": "0x" + hash_of(50).hex().upper()}, []),
        ({"from_block": 20}, ["node 100: blocks 10 to 19, before its export begins"]),
        ({"from_block": 5}, ["node 100: blocks 5 to 9, before the chain export begins"]),
        ({"to_block": 49}, ["node 100: block 50, which its export does not reach"]),
        ({"to_block": 10}, ["node 100: blocks 11 to 50, which its export does not reach"]),
    ],
)
def test_compare_ranges__ranges_overlap__compares_and_names_the_rest(
    node: dict[str, Any], sentences: list[str]
) -> None:
    hashes = {number: hash_of(number) for number in range(10, 51)}

    result = compare_ranges(export("chain"), [NodeExport(NODE, export(**node))], hashes)

    assert [item.node.node_id for item in result.comparable] == [100]
    assert list(result.left_out) == sentences
    assert result.set_aside == {}


@pytest.mark.parametrize(
    ("answered_to", "counter", "sentences"),
    [
        (8, 8, []),
        (7, 8, ["sequences above 7, the last that it answered when it was asked"]),
        (8, None, ["sequences above 8, the last that it answered when it was asked"]),
        (0, 0, []),
    ],
)
def test_compare_ranges__node_was_asked__says_up_to_which_sequence(
    answered_to: int, counter: int | None, sentences: list[str]
) -> None:
    chain = export("chain", sequence_after=counter)
    node = NodeExport(NODE, export(answered_to=answered_to))

    result = compare_ranges(chain, [node], {50: hash_of(50)})

    assert list(result.left_out) == [f"node 100: whether it serves {each}" for each in sentences]
    assert node.highest_required == answered_to


def test_compare_ranges__another_export_of_another_fork__is_refused() -> None:
    same, fork = export(answered_to=8), export(answered_to=8, to_block_hash="0x" + "00" * 32)
    node = NodeExport(NODE, export(), (same, fork))

    result = compare_ranges(export("chain"), [node], {50: hash_of(50)})

    [compared] = result.comparable
    assert compared.others == (same,)
    [refused] = result.refused
    assert refused.reason.startswith("node 100: node: its export ends on another fork")
    assert list(result.left_out) == ["node 100: node with the chain: it was compared with node"]


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({"to_block": 51}, "beyond the chain export's last block 50"),
        ({"from_block": 1, "to_block": 9}, "they have no block in common"),
        ({"from_block": 51}, "begins at block 51, after its last block 50"),
        ({"to_block_hash": "0x" + "00" * 32}, "ends on another fork"),
        ({"to_block": 48}, "the chain export has no block"),
    ],
)
def test_compare_ranges__no_common_chain__sets_the_node_aside(
    node: dict[str, Any], reason: str
) -> None:
    result = compare_ranges(export("chain"), [NodeExport(NODE, export(**node))], {50: hash_of(50)})

    assert result.comparable == ()
    assert reason in result.set_aside[100]


@pytest.mark.parametrize(
    ("begin", "left_out"),
    [
        (4, ()),
        (5, ()),
        (6, ("node 100: block 5, before its export begins",)),
        (50, ("node 100: blocks 5 to 49, before its export begins",)),
    ],
)
def test_compare_ranges__begins_after_the_deployment__is_compared_from_there(
    begin: int, left_out: tuple[str, ...]
) -> None:
    chain = export("chain", from_block=1, first_block=5)
    node = export(from_block=begin)

    result = compare_ranges(chain, [NodeExport(NODE, node)], {50: hash_of(50)})

    assert [item.node.node_id for item in result.comparable] == [100]
    assert [each for each in result.left_out if "its export" in each] == list(left_out)


@pytest.mark.parametrize(
    ("begin", "left_out"),
    [(7, ()), (12, ()), (13, ("node 100: block 12, before its export begins",))],
)
def test_compare_ranges__payload_contracts_came_later__nothing_is_missing_before_them(
    begin: int, left_out: tuple[str, ...]
) -> None:
    chain = export("chain", from_block=7, first_block=7, first_payload_block=12)

    result = compare_ranges(chain, [NodeExport(NODE, export(from_block=begin))], {50: hash_of(50)})

    assert [item.node.node_id for item in result.comparable] == [100]
    assert result.left_out == left_out


def test_compare_ranges__export_cannot_be_read__is_set_aside_with_the_reason() -> None:
    nodes = [NodeExport(NODE, export())]

    result = compare_ranges(export("chain"), nodes, {50: hash_of(50)}, {100: "torn"})

    assert result.set_aside == {100: "node 100: torn"}
