"""The order in which a topic prefers the nodes."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.nodes.preference import in_order_of_preference


def test_order__topics__begin_with_any_node() -> None:
    ids = {300, 100, 200}
    orders = {tuple(in_order_of_preference(b"\x01%d" % number, ids)) for number in range(50)}

    assert {order[0] for order in orders} == ids
    assert in_order_of_preference(b"\x01a", []) == []
    # crc32("\x01a") by zlib, the same on every machine.
    assert in_order_of_preference(b"\x01a", ids)[0] == sorted(ids)[1651995248 % 3]


@pytest.mark.conforms("C15")
@given(st.binary(max_size=33), st.sets(st.integers(1, 2**32 - 1), max_size=8))
def test_order__each_next_one__is_preferred_without_those_before(
    topic: bytes, ids: set[int]
) -> None:
    excluded: list[int] = []
    for node_id in in_order_of_preference(topic, ids):
        # The specification's own words: sorted, without the excluded, by CRC32 modulo their number.
        nodes = sorted(each for each in ids if each not in excluded)
        assert node_id == nodes[crc32(topic) % len(nodes)]
        excluded.append(node_id)
    assert set(excluded) == ids
