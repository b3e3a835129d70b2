"""Payloads that are never served, as an operator finds them."""

import pytest

from chainkit_indexer.inspection.quarantine import find_quarantined, list_quarantine, preview
from support.chains.fake_chain import malformed
from support.indexer.fake_node import FakeNode
from support.indexer.six_blocks import C

pytest_plugins = ["support.indexer.node_fixtures"]


def test_quarantine__filters__choose_by_reason_block_and_number(node: FakeNode) -> None:
    node.chain.mine([malformed("g")], [malformed("h")])
    node.catch_up()

    def chosen(**filters: object) -> list[int]:
        return [each.sequence_id for each in list_quarantine(node.store, **filters)]  # type: ignore[arg-type]

    assert chosen() == [3, 7, 8]
    assert chosen(from_block=5) == [7, 8]
    assert chosen(limit=1) == [3]
    assert chosen(reason="not a ClientEnvelope") == [3, 7, 8]
    assert chosen(reason="no aad") == []


def test_quarantine__one__is_found_with_its_payload(node: FakeNode) -> None:
    found = find_quarantined(node.store, 0, 3)

    assert found is not None
    assert (found.payload, found.transaction_hash) == (C.payload, C.transaction_hash)
    assert find_quarantined(node.store, 0, 2) is None


@pytest.mark.parametrize(
    ("data", "most", "expected"),
    [
        (b"plain", 9, "plain"),
        (b"longer than that", 6, "longer…"),
        (b"\x1b[2J\r\n\x00\xff\x9b", 99, r"\x1b[2J\x0d\x0a\x00\xff\x9b"),
        (b"'\"\\", 99, "'\"" + 2 * "\\"),
        ("é\u202e".encode(), 99, r"\xc3\xa9\xe2\x80\xae"),
        (b"", 9, ""),
    ],
)
def test_printable__any_bytes__are_plain_characters(data: bytes, most: int, expected: str) -> None:
    assert preview(data, most) == expected
