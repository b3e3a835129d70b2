"""Bytes that fill a database, and when it is full: exact for few envelopes, else estimated."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, delete

from chainkit.protocol.charges import Charge
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_node.inspection.storage_status import read_storage
from chainkit_node.originating.storage_keeper import StorageKeeper
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.settings import StorageLimits
from chainkit_node.storage import schema
from chainkit_node.storage.charges import insert_charges
from chainkit_node.storage.storage_looks import (
    DatabaseSize,
    Growth,
    read_growth,
    read_newest,
    write_look,
)
from chainkit_node.storage.stored_bytes import (
    DAY_SECONDS,
    MOST_WINDOWS,
    NEVER,
    WINDOW_IDS,
    StoredBytes,
    estimate_bytes,
)
from support.indexer.loop_results import idle

A, B = 100, 200
MESSAGE, PACKAGE = b"\0group", b"\3installation"
PAYERS = [bytes([each]) * 20 for each in range(1, 14)]
DAY = 20_000
NOW = DAY * DAY_SECONDS


@pytest.fixture
def connection(store: Store) -> Iterator[Connection]:
    with store.writing() as opened:
        for table in (schema.charges, schema.database_sizes, schema.stored_shares, envelopes):
            opened.execute(delete(table))
        yield opened


def hold(
    store: Store,
    connection: Connection,
    originator_id: int,
    ids: range,
    topic: bytes = MESSAGE,
    size: int = 10,
    payer: bytes | None = None,
    day: int | None = DAY,
) -> None:
    expires = None if day is None else day * DAY_SECONDS + 5
    rows = [StoredEnvelope(originator_id, each, 1, topic, expires, bytes(size)) for each in ids]
    store.insert_envelopes(connection, rows)
    if payer is not None:
        charge = Charge(payer, topic[0], size, 30)
        insert_charges(store, connection, originator_id, ((each, charge) for each in ids))


def test_estimate__few_envelopes__counts_each_one_three_times_over(
    store: Store, connection: Connection
) -> None:
    hold(store, connection, 0, range(1, 3), b"\2inbox", 100, day=None)
    hold(store, connection, A, range(1, 101), payer=PAYERS[0])
    hold(store, connection, B, range(5_001, 5_011), PACKAGE, 30, PAYERS[1], DAY + 89)

    found = estimate_bytes(connection, random.Random(1))

    assert dict(found.kinds) == {2: 200, 0: 1_000, 3: 300}
    assert dict(found.payers) == {b"": 200, PAYERS[0]: 1_000, PAYERS[1]: 300}
    assert dict(found.days) == {NEVER: 200, DAY: 1_000, DAY + 89: 300}


def test_estimate__many_envelopes_with_holes__is_near_the_sums(
    store: Store, connection: Connection
) -> None:
    most = 3 * MOST_WINDOWS * WINDOW_IDS
    for first in range(1, most, 1_000):
        # Nine tenths expired and were pruned; one key package is held between the messages.
        hold(store, connection, A, range(first, first + 100), payer=PAYERS[first // 1_000 % 2])
        hold(store, connection, A, range(first + 500, first + 510), PACKAGE, 100)

    found = estimate_bytes(connection, random.Random(1))

    total = len(range(1, most, 1_000)) * 1_000
    assert found.kinds[0] == pytest.approx(total, rel=0.15)
    assert found.kinds[3] == pytest.approx(total, rel=0.3)
    assert found.payers[PAYERS[0]] == pytest.approx(total / 2, rel=0.25)


def test_estimate__ids_that_lie_far_apart__leaves_the_originator_out(
    store: Store, connection: Connection
) -> None:
    hold(store, connection, 0, range(17, 18))
    hold(store, connection, 0, range(2**62, 2**62 + 1))

    assert not estimate_bytes(connection, random.Random(1)).kinds


@pytest.mark.parametrize(
    ("sizes", "growth"),
    [
        ([(0, 10, 50)], None),
        ([(0, 10, 50), (5, 20, 50)], None),
        ([(0, 10, 50), (6, 20, 50)], Growth(40, 5 * 6 * 3_600.0)),
        ([(0, 10, 50), (6, 20, None)], Growth(40, None)),
        ([(0, 10, 50), (6, 20, -3)], Growth(40, 0.0)),
        ([(0, 40, 50), (24, 20, 50)], Growth(-20, None)),
        # Growth of a month ago does not count.
        ([(0, 0, 90), (720, 60, 90), (744, 70, 90)], Growth(10, 9 * 24 * 3_600.0)),
        ([(0, 10, 50), (6, 15, 60), (6, 20, 50)], Growth(40, 5 * 6 * 3_600.0)),
    ],
)
def test_growth__of_sizes__is_a_days_and_says_when_the_room_ends(
    connection: Connection, sizes: list[tuple[int, int, int | None]], growth: Growth | None
) -> None:
    for hour, used, room in sizes:
        write_look(connection, DatabaseSize(DAY * 24 + hour, used, room), StoredBytes())

    newest = read_newest(connection)
    assert newest is not None
    assert read_growth(connection, newest) == growth


def test_look__for_a_year__keeps_ninety_days_and_ten_payers(connection: Connection) -> None:
    stored = StoredBytes()
    stored.payers.update({payer: 100 + n for n, payer in enumerate(PAYERS)})
    stored.days.update({DAY - 1: 1, DAY: 2, DAY + 1: 4, DAY + 29: 8, DAY + 400: 16, NEVER: 32})
    for each in range(365):
        write_look(connection, DatabaseSize((DAY - 364 + each) * 24, 1_000 + each, 9), stored)

    found = read_storage(connection)

    assert found is not None and (found.used_bytes, found.growth_bytes) == (1_364, 1)
    assert len(found.sizes) == 91
    assert [each.bytes for each in found.sizes[-2:]] == [1_363, 1_364]
    assert [each.bytes for each in found.payers] == [303, *range(112, 102, -1)]
    assert found.payers[0].name == "others"
    assert [(each.name, each.bytes) for each in found.expiries if each.bytes] == [
        *(("expired", 1), ("1 d", 2), ("7 d", 4), ("30 d", 8), ("later", 16), ("never", 32))
    ]


def test_keeper__of_a_real_database__stores_and_measures_its_size(store: Store) -> None:
    with store.writing() as opened:
        opened.execute(delete(schema.database_sizes))
        hold(store, opened, 900, range(1, 4))
    metrics = NodeMetrics()
    space = StorageSpace(lambda most: 5_000, StorageLimits(free_bytes=1_000))
    space.succeeded(idle(1), 0.1)

    StorageKeeper(store, space, lambda: float(NOW), metrics.storage.looked).look()

    with store.reading() as connection:
        newest = read_newest(connection)
    assert newest is not None and (newest.hour, newest.room_bytes) == (NOW // 3_600, 4_000)
    assert 4_096 < newest.used_bytes <= store.used_bytes()
    text = metrics.text().decode()
    assert 'chainkit_node_stored_bytes{kind="group_message"}' in text
    assert "chainkit_node_storage_seconds_left NaN" in text
