"""``chainkit node verify`` on each kind of database: sound, and with a fault of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import delete, insert, update

from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema
from support.command_line import Outcome, run
from support.network.held_logs import (
    COUNT,
    PEER,
    change,
    hold_logs,
    place,
    signed_by_another,
)
from support.network.originator import BEGIN_NS, Originator
from support.reporting import ACCUSED, KEYS, OTHER, Host

UNLISTED = 900


@pytest.fixture
def host(database_url: str) -> Iterator[Host]:
    with closing(hold_logs(database_url)) as host:
        yield host


def verified(database_url: str) -> Outcome:
    return run("node", "verify", "--database", database_url, "--json")


def plant(host: Host) -> None:
    """Damage rows in each way, one row for each."""
    change(host, 0, 1, topic=b"\x01another")
    change(host, 0, 2, envelope=signed_by_another(host, 2))
    change(host, ACCUSED, 130, envelope=Originator(ACCUSED, KEYS[OTHER]).signed(130, 130.0))
    change(host, ACCUSED, 131, envelope=b"\xff\xff")
    change(host, ACCUSED, 132, topic=b"\x01another")
    change(host, ACCUSED, 133, originator_ns=BEGIN_NS)
    change(host, ACCUSED, 134, expires_at=9)
    change(host, ACCUSED, 135, envelope=PEER.signed(136, 136.0))
    unlisted = Originator(UNLISTED, KEYS[OTHER]).signed(1, 0.0)
    columns = {"originator_ns": BEGIN_NS, "topic": b"", "expires_at": None, "envelope": unlisted}
    digests = update(schema.range_digests).where(schema.range_digests.c.number == 1)
    with host.store.writing() as connection:
        connection.execute(delete(envelopes).where(place(ACCUSED, 140)))
        row = {"originator_id": UNLISTED, "sequence_id": 1, **columns}
        connection.execute(insert(envelopes).values(**row))
        connection.execute(digests.values(digests=bytes(64)))


def test_verify__sound_database__is_clean_and_counted(host: Host, database_url: str) -> None:
    done = verified(database_url)

    assert (done.code, done.content["fault_count"], done.content["faults"]) == (0, 0, [])
    chain, peer = done.content["originators"]
    assert (chain["originator_id"], chain["envelopes"], chain["missing_ids"]) == (0, 2, 0)
    assert (peer["originator_id"], peer["last_id"]) == (ACCUSED, COUNT)
    assert (peer["envelopes"], peer["missing_ids"], peer["ranges"]) == (COUNT - 5, 5, 2)


def test_verify__fault_of_each_kind__is_found(host: Host, database_url: str) -> None:
    plant(host)

    done = verified(database_url)

    assert done.code == 1
    assert {(each["originator_id"], each["subject"]) for each in done.content["faults"]} == {
        (0, "topic of envelope 1"),
        (0, "envelope 2"),
        (ACCUSED, "envelope 130"),
        (ACCUSED, "envelope 131"),
        (ACCUSED, "topic of envelope 132"),
        (ACCUSED, "originator_ns of envelope 133"),
        (ACCUSED, "expires_at of envelope 134"),
        (ACCUSED, "sequence_id of envelope 135"),
        (ACCUSED, "originator_ns of envelope 135"),
        (ACCUSED, "ids 140 to 140"),
        (ACCUSED, "digests of ids 65 to 128"),
        (UNLISTED, "envelope 1"),
    }
    assert [each["faults"] for each in done.content["originators"]] == [2, 9, 1]
    assert done.content["fault_count"] == 12
