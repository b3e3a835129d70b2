"""A run of the pruner deletes exactly what has expired and is paid for, in any log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.schema import blocks, envelopes
from chainkit_node.pruning import pruner
from chainkit_node.pruning.pruner import PrunedLog, Pruner
from chainkit_node.storage import id_blocks, schema
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.pruning import Kept, Tally
from chainkit_node.storage.range_digests import store_ranges
from support.indexer.ranges import row
from support.reporting import ACCUSED, Host, register

NOW = 1_800_000_000
DAY = 86_400
MESSAGE, WELCOME, IDENTITY, PACKAGE = (kind.topic(bytes(32)) for kind in TopicKind)
KEPT_TOPICS = (IDENTITY, b"")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with closing(Host(tmp_path / "node.db")) as host:
        register(host)
        host.chain.mine([], [])
        host.indexer.catch_up()
        followed(host, NOW)
        yield host


def followed(host: Host, timestamp: int) -> None:
    """Let the last block that the node followed have a time."""
    with host.store.writing() as connection:
        connection.execute(update(blocks).values(timestamp=timestamp))


def put(host: Host, *rows: StoredEnvelope, stores: bool = True) -> None:
    with host.store.writing() as connection:
        host.store.insert_envelopes(connection, rows)
        for originator_id in {each.originator_id for each in rows} if stores else ():
            while store_ranges(connection, originator_id, 1000):
                pass


def attest(
    host: Host, first: int, last: int, *, originator_id: int = ACCUSED, at: int | None = 1
) -> None:
    with host.store.writing() as connection:
        report = StoredPayerReport(originator_id, first, last, b"", b"", b"", 1, at)
        insert_report(connection, report)


def held(host: Host, originator_id: int = ACCUSED) -> set[int]:
    table = envelopes.c
    with host.store.reading() as connection:
        query = select(table.sequence_id).where(table.originator_id == originator_id)
        return set(connection.scalars(query))


def pruned(host: Host, originator_id: int = ACCUSED) -> set[int]:
    with host.store.reading() as connection:
        runs = PRUNED.runs(connection, originator_id, range(1, 2**40))
        return {each for run in runs for each in run}


def prune(host: Host, now: int = NOW, **options: Any) -> dict[int, PrunedLog]:
    run = Pruner(host.store, lambda: now, lambda: 0.0, lambda seconds: None, **options)
    return {each.originator_id: each for each in run.run(lambda log: None)}


def expiring(
    sequence_id: int, topic: bytes = WELCOME, expires_at: int | None = NOW - DAY, ns: int = 0
) -> StoredEnvelope:
    made = row(sequence_id, expires_at=expires_at, originator_id=ACCUSED)
    return made._replace(topic=topic, originator_ns=ns or sequence_id)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.conforms("T5", "T9")
def test_run__any_log__deletes_what_expired_and_is_covered_and_nothing_else(
    host: Host, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(pruner, "BATCH_BYTES", chance.choice((1, 500, 10_000)))
    topics = (MESSAGE, WELCOME, *KEPT_TOPICS, PACKAGE, TopicKind.KEY_PACKAGE.topic(b"\1" * 32))
    expiries = (None, NOW - 2 * DAY, NOW - DAY, NOW - DAY + 1, NOW - 1, NOW, NOW + DAY)
    rows = {
        each: expiring(each, chance.choice(topics), chance.choice(expiries))
        for each in range(1, 400)
        if chance.random() > 0.2
    }
    put(host, *rows.values())
    disputed = set(chance.sample(sorted(rows), 20))
    with host.store.writing() as connection:
        for each in disputed:
            values = {"originator_id": ACCUSED, "sequence_id": each, "envelope": b""}
            connection.execute(insert(schema.disputed_envelopes).values(values))
    charge = {"originator_id": ACCUSED, "payer": b"", "kind": 0, "bytes": 1, "days": 1}
    with host.store.writing() as connection:
        values = [charge | {"sequence_id": each} for each in rows]
        connection.execute(insert(schema.charges), values)
    ends = [0, *sorted(chance.sample(range(1, 450), 4))]
    late = chance.randrange(4)
    for number, (before, end) in enumerate(pairwise(ends)):
        attest(host, before + 1, end, at=None if number == late else 1)
    newest = {each.topic: each.sequence_id for each in rows.values()}

    def may_go(each: StoredEnvelope, now: int, covered: int) -> bool:
        is_kept = each.topic in KEPT_TOPICS or each.expires_at is None
        is_package = TopicKind.KEY_PACKAGE.matches(each.topic)
        return not (
            is_kept
            or each.expires_at > now - DAY
            or each.sequence_id > covered
            # The last leaf is not complete before its 64th id is given out.
            or each.sequence_id > max(rows) // 64 * 64
            or each.sequence_id == max(rows)
            or each.sequence_id in disputed
            or (is_package and newest[each.topic] == each.sequence_id)
        )

    before = prune(host, is_dry=True)[ACCUSED]
    assert held(host) == rows.keys()
    log = prune(host, batch=chance.choice((1, 7, 500)))[ACCUSED]

    with host.store.reading() as connection:
        assert set(connection.scalars(select(schema.charges.c.sequence_id))) == held(host)
    gone = {each for each, row in rows.items() if may_go(row, NOW, ends[late])}
    assert held(host) == rows.keys() - gone
    assert pruned(host) == gone
    assert before.kinds == log.kinds
    expired = [each for each in rows.values() if (each.expires_at or NOW) <= NOW - DAY]
    waiting = [
        each
        for each in expired
        if max(rows) // 64 * 64 < each.sequence_id <= ends[late]
        and each.sequence_id != max(rows)
        and may_go(each._replace(sequence_id=1), NOW, ends[late])
    ]
    assert sum(before.kept.values()) + len(gone) + len(waiting) == len(expired)
    permanent = [each for each in expired if each.topic in KEPT_TOPICS]
    assert before.kept.get(Kept.PERMANENT, 0) == len(permanent)
    assert log.kept == {}
    assert log.envelopes == len(gone)
    assert log.bytes == sum(len(rows[each].envelope) for each in gone)

    with host.store.writing() as connection:
        connection.execute(update(schema.payer_reports).values(attested_ns=1))
    later = NOW + chance.choice((1, DAY, 9 * DAY))
    followed(host, later)
    prune(host, later)

    gone |= {each for each, row in rows.items() if may_go(row, later, ends[-1])}
    assert held(host) == rows.keys() - gone
    assert pruned(host) == gone


def test_run__clocks_that_contradict_each_other__believes_the_earlier(host: Host) -> None:
    put(host, *map(expiring, range(1, 100)))
    attest(host, 1, 99)
    followed(host, NOW - 1)

    assert prune(host, NOW + 10**9)[ACCUSED].envelopes == 0
    followed(host, NOW + 10**9)
    assert prune(host, NOW - 1)[ACCUSED].envelopes == 0
    size = sum(len(expiring(each).envelope) for each in range(1, 65))
    assert prune(host, NOW)[ACCUSED].kinds == {TopicKind.WELCOME: Tally(64, size)}


def test_run__chain_never_followed__deletes_nothing(tmp_path: Path) -> None:
    with closing(Host(tmp_path / "node.db")) as host:
        register(host)
        put(host, *map(expiring, range(1, 100)))
        attest(host, 1, 99)

        assert prune(host)[ACCUSED].envelopes == 0


def test_run__digests_not_stored_yet__waits_for_them(host: Host) -> None:
    put(host, *map(expiring, range(1, 100)), stores=False)
    attest(host, 1, 99)

    assert prune(host)[ACCUSED].envelopes == 0
    put(host, expiring(100))
    assert prune(host)[ACCUSED].envelopes == 64


def test_run__node_that_the_registry_does_not_list__is_left_alone(host: Host) -> None:
    rows = [expiring(each)._replace(originator_id=900) for each in range(1, 100)]
    put(host, *rows)
    attest(host, 1, 99, originator_id=900)

    assert 900 not in prune(host)
    assert len(held(host, 900)) == 99


def test_run__envelope_that_came_late__is_found_within_a_week(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_blocks, "BLOCK_IDS", 64)
    put(host, expiring(1), *(expiring(each, expires_at=None) for each in range(3, 66)))
    attest(host, 1, 64)
    assert prune(host)[ACCUSED].envelopes == 1
    put(host, expiring(2), stores=False)

    assert prune(host)[ACCUSED].envelopes == 0
    followed(host, NOW + 7 * DAY)
    assert prune(host, NOW + 7 * DAY)[ACCUSED].envelopes == 1


def test_run__all_have_expired__the_last_stays_for_the_next_id_to_follow(host: Host) -> None:
    put(host, *map(expiring, range(1, 65)))
    attest(host, 1, 64)

    log = prune(host, is_dry=True)[ACCUSED]
    prune(host)

    assert held(host) == {64}
    assert log.kept == {Kept.LAST: 1}
