"""Evidence in the client's database: each broken rule once, and the envelope of each place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import VerifiedEnvelope, read_envelope
from chainkit_client.storage.evidence import (
    MOST_UNKNOWN,
    count_unknown,
    forget_promises,
    keep_breaches,
    keep_envelopes,
    keep_promise,
    keep_unknown,
    read_breaches,
    read_envelope_at,
    read_promises,
    report_taken,
)
from chainkit_client.storage.store import Store
from support.client.served import KEYS, NODE, of_chain

ORDER = Breach(100, Misbehavior.OUT_OF_ORDER, "2 came after 3", (NODE.signed(2), NODE.signed(3)))
UNNAMED = Breach(200, None, "it hides 7", ())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "client.db", "password", cost=2)
    yield opened
    opened.close()


def verified(data: bytes) -> VerifiedEnvelope:
    envelope = read_envelope(data, 100, KEYS).envelope
    assert envelope is not None
    return envelope


def test_keep_breaches__one_envelope_in_other_words__is_one(store: Store) -> None:
    late = [Breach(100, None, f"its time is {each} s ahead", (NODE.signed(2),)) for each in (1, 2)]

    with store.writing() as connection:
        keep_breaches(connection, late, 5)
        assert [each.reason for each in read_breaches(connection)] == [late[0].reason]


def test_keep_breaches__the_same_again__stays_as_it_was_first(store: Store) -> None:
    with store.writing() as connection:
        keep_breaches(connection, [ORDER, UNNAMED], 5)
        keep_breaches(connection, [ORDER, UNNAMED], 6)

    with store.reading() as connection:
        kept = {each.node_id: each for each in read_breaches(connection)}

    assert len(kept) == 2
    assert (kept[100].misbehavior, kept[100].reason) == (ORDER.misbehavior, ORDER.reason)
    assert {each.seen_ns for each in kept.values()} == {5}
    report = kept[100].report
    assert report is not None
    parsed = parse_unsigned(report)
    assert (parsed.envelopes, parsed.reporter_time_ns) == (ORDER.envelopes, 5)
    assert (kept[200].misbehavior, kept[200].report) == (None, None)


def test_report_taken__by_some_nodes__is_counted(store: Store) -> None:
    with store.writing() as connection:
        keep_breaches(connection, [ORDER], 5)
        [kept] = read_breaches(connection)
        report_taken(connection, kept.id, 2)

    with store.reading() as connection:
        assert [each.taken_by for each in read_breaches(connection)] == [2]


def test_keep_envelopes__a_reorg_puts_another_in_the_place__is_the_one_that_is_kept(
    store: Store,
) -> None:
    first, other = verified(of_chain(3)), verified(of_chain(3, seconds=2))
    with store.writing() as connection:
        keep_envelopes(connection, [first, verified(NODE.signed(4))])
        keep_envelopes(connection, [other])

    with store.reading() as connection:
        assert read_envelope_at(connection, (0, 3)) == other.envelope
        assert read_envelope_at(connection, (100, 4)) == NODE.signed(4)
        assert read_envelope_at(connection, (100, 5)) is None


def test_keep_promise__place_is_promised_twice__the_first_stays(store: Store) -> None:
    first, second = NODE.signed(2), NODE.signed(2, 1.0)

    with store.writing() as connection:
        for each in (first, second):
            keep_promise(connection, verified(each), 5)
        assert read_promises(connection, 4) == [first]


def test_read_promises__some_are_old__are_forgotten(store: Store) -> None:
    old, new = NODE.signed(2), NODE.signed(3)

    with store.writing() as connection:
        keep_promise(connection, verified(old), 5)
        keep_promise(connection, verified(new), 6)
        assert read_promises(connection, 5) == [new]
        forget_promises(connection, [(100, 3)])
        assert read_promises(connection, 0) == []


def test_keep_unknown__one_payload_often_and_many_of_a_node__counts_each_once_up_to_a_bound(
    store: Store,
) -> None:
    with store.writing() as connection:
        for _ in range(2):
            keep_unknown(connection, 200, [b"one", b"one"], 5)
        keep_unknown(connection, 100, map(bytes, range(2 * MOST_UNKNOWN)), 5)
        keep_unknown(connection, 100, [b"another"], 5)

        assert count_unknown(connection) == {100: MOST_UNKNOWN, 200: 1}
