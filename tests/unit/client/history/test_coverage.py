"""Rows of a device against the envelopes of nodes: no honest device is accused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.history.coverage import Coverage, Row, compare
from chainkit_client.history.served import Served, ServedEnvelope
from chainkit_client.storage.imported import ImportedGroup
from chainkit_client.storage.imported_schema import Standing
from chainkit_client.storage.schema import MessageKind

GROUP = b"g" * 16
CHAIN, NODE = 0, 100
DAY_NS = 86_400 * NANOSECONDS_PER_SECOND
NOW_NS = 20_000 * DAY_NS


def served(number: int, originator: int = NODE, age_ns: int = 100) -> ServedEnvelope:
    digest = bytes([originator, number]) * 16
    return ServedEnvelope(
        (originator, number), NOW_NS - age_ns, digest, originator == CHAIN, digest
    )


def row_of(envelope: ServedEnvelope) -> Row:
    tag = b"tag of " + envelope.digest
    kind = MessageKind.MEMBER_ADDED if envelope.is_commit else MessageKind.APPLICATION
    return Row(tag, kind, envelope.place, envelope.originator_ns, envelope.digest)


def compared(
    rows: Sequence[Row],
    envelopes: Sequence[ServedEnvelope],
    said: Sequence[ImportedGroup] = (),
    is_complete: bool = True,
) -> tuple[Coverage, dict[bytes, Standing | None]]:
    """The coverage, and the standings by tag."""
    standings: dict[bytes, Standing | None] = {}
    by_place = sorted(rows, key=lambda each: each.place or ())
    served = Served(envelopes)
    coverage = compare(GROUP, by_place, said, served, is_complete, NOW_NS, standings.__setitem__)
    assert coverage.counts == Counter(standings.values())
    return coverage, standings


def standing(row: Row, *envelopes: ServedEnvelope, is_complete: bool = True) -> Standing | None:
    return compared([row], envelopes, is_complete=is_complete)[1][row.tag]


ONE, TWO, COMMIT = served(1, age_ns=200), served(2), served(3, CHAIN)
OLD = served(2, age_ns=2 * DAY_NS)


def test_compare__nodes_have_what_the_row_names__is_proven() -> None:
    assert standing(row_of(ONE), ONE, TWO) is Standing.PROVEN
    assert standing(row_of(COMMIT), COMMIT) is Standing.PROVEN
    # An originator may have signed two envelopes for one place, and devices got different ones.
    assert standing(row_of(ONE), replace(ONE, digest=b"\xee" * 32), ONE) is Standing.PROVEN


@pytest.mark.parametrize(
    "row",
    [
        replace(row_of(ONE), digest=b"\xee" * 32),
        replace(row_of(ONE), originator_ns=1),
        replace(row_of(ONE), kind=MessageKind.MEMBER_ADDED),
        replace(row_of(COMMIT), kind=MessageKind.APPLICATION),
        row_of(served(9)),
        row_of(served(9, CHAIN, 3 * DAY_NS)),
        # It claims a time before that of the envelope below it, which is young.
        row_of(served(9, age_ns=3 * DAY_NS)),
    ],
)
def test_compare__no_node_has_what_the_row_names__is_invented(row: Row) -> None:
    assert standing(row, ONE, TWO, COMMIT) is Standing.INVENTED


def test_compare__a_node_is_silent__what_is_absent_is_not_judged() -> None:
    assert standing(row_of(TWO), ONE, is_complete=False) is None
    assert standing(row_of(ONE), ONE, is_complete=False) is Standing.PROVEN


def test_compare__older_than_the_shortest_retention__is_expired() -> None:
    assert standing(row_of(OLD)) is Standing.EXPIRED
    assert standing(row_of(OLD), served(1, age_ns=3 * DAY_NS), served(3)) is Standing.EXPIRED
    assert standing(row_of(OLD), served(1, originator=NODE + 1)) is Standing.EXPIRED


def test_compare__row_without_a_place__proves_nothing() -> None:
    row = Row(b"tag", MessageKind.APPLICATION, None, None, None)

    assert compared([row, replace(row, tag=b"other")], [])[1] == {
        b"tag": Standing.PLACELESS,
        b"other": Standing.PLACELESS,
    }


def test_compare__two_messages_claim_one_envelope__both_are_disputed() -> None:
    first, second = row_of(ONE), replace(row_of(ONE), tag=b"other words")

    assert set(compared([first, second], [ONE])[1].values()) == {Standing.DISPUTED}
    own = replace(first, is_own=True)
    assert compared([own, second], [ONE])[1] == {second.tag: Standing.DISPUTED}
    assert standing(replace(first, is_disputed=True), ONE) is Standing.DISPUTED


def test_compare__one_commit_adds_two_members__both_rows_are_proven() -> None:
    rows = [row_of(COMMIT), replace(row_of(COMMIT), tag=b"second member")]

    assert set(compared(rows, [COMMIT])[1].values()) == {Standing.PROVEN}


def test_compare__one_device_could_not_read_what_another_one_did__nothing_is_disputed() -> None:
    unreadable = replace(row_of(ONE), tag=b"note", kind=MessageKind.UNREADABLE)

    _, standings = compared([row_of(ONE), unreadable], [ONE])

    assert set(standings.values()) == {Standing.PROVEN}


def said(through: int, since_ns: int = 0, skipped: Sequence[int] = ()) -> ImportedGroup:
    return ImportedGroup(GROUP, since_ns, {NODE: through}, [(NODE, each) for each in skipped])


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (said(2), 1),
        (said(1), 0),
        (said(2, skipped=[2]), 0),
        (said(2, since_ns=NOW_NS), 0),
    ],
)
def test_compare__row_is_missing_of_what_a_device_read__is_omitted(
    group: ImportedGroup, expected: int
) -> None:
    found, _ = compared([row_of(ONE)], [ONE, TWO, served(1, CHAIN)], [group])

    assert (found.omitted, found.is_doubtful) == (expected, bool(expected))


def test_compare__message_is_at_two_originators__one_row_shows_both() -> None:
    copy = replace(served(1, NODE + 1), payload_hash=ONE.payload_hash)
    group = ImportedGroup(GROUP, 0, {NODE: 1, NODE + 1: 1}, [])

    assert compared([row_of(ONE)], [ONE, copy], [group])[0].omitted == 0
    assert compared([], [ONE, copy], [group])[0].omitted == 1


@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from([CHAIN, NODE]), st.booleans())),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_compare__honest_device_and_expired_or_silent_nodes__nothing_is_doubtful(
    history: list[tuple[int, int, bool]], is_complete: bool
) -> None:
    # Times rise with ids, nodes may have deleted what is older than a day, and the device had read
    # a part: messages of others that it could not open are skipped.
    every, rows, have, skipped = [], [], [], []
    for number, (hours, originator, is_read) in enumerate(sorted(history, reverse=True), 1):
        each = served(number, originator, hours * DAY_NS // 10 + 1000 - number)
        every.append(each)
        if originator == CHAIN or hours <= 10:
            have.append(each)
        if is_read:
            rows.append(row_of(each))
        else:
            skipped.append(each.place)
    through = {CHAIN: len(every), NODE: len(every)}
    found, _ = compared(rows, have, [ImportedGroup(GROUP, 0, through, skipped)], is_complete)

    assert not found.is_doubtful
