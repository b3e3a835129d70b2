"""Sequence ids and signatures of a node whose process is killed, again and again, under load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import make_url

from chainkit.errors import StoreError
from chainkit.protocol.originated_envelope import parse_originated, recover_originator
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_by_originators
from chainkit_indexer.storage.store import Store
from chainkit_node.originating.sequence_record import DatabaseOlder, SequenceRecord
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.types import NewEnvelope
from localnet.postgres import Postgres
from support.command_line import run
from support.network.mortal_sequencer import (
    IDENTITY,
    KEY,
    NODE_ID,
    TOPIC,
    Answer,
    Life,
    MortalSequencer,
    digest_of,
)
from support.seeds import IS_SOAK

KILLS = 1_000 if IS_SOAK else 20
TAKEOVERS = 100 if IS_SOAK else 3
SEED = int(os.environ.get("CHAINKIT_SEED", "0x6b696c6c"), 0)
MOST_ANSWERS = 60
"""Before a kill; some come before the first answer, or before the database is open."""
NOON_NS = 1_700_000_000_000_000_000
CLOCK_NS = 120 * 10**9
"""How far a life's clock may be off: two differ by less than the 5 minutes that are refused."""
ALL = 2**40

# The long variant is longer than any other test.
pytestmark = pytest.mark.timeout(3600 if IS_SOAK else 300)


@dataclass
class Log:
    """A database that outlives its processes, and everything that was ever seen of it."""

    location: str
    record: Path
    random: Random = field(default_factory=lambda: Random(SEED))
    lives: Iterator[int] = field(default_factory=count)
    digests: list[str] = field(default_factory=list, repr=False)
    """Those of the envelopes, from sequence id 1 on."""
    last_ns: int = 0

    def next_life(self) -> Life:
        clock_ns = NOON_NS + self.random.randint(-CLOCK_NS, CLOCK_NS)
        return Life(self.location, str(self.record), next(self.lives), clock_ns)

    def some(self) -> int:
        return self.random.randrange(MOST_ANSWERS)

    def check(self, answers: Iterable[Answer]) -> None:
        """Fail unless the database goes on where it was, and has all that was answered."""
        new = self._rows_after(len(self.digests))
        for row in new:
            self._add(row)
        check_requests([parse_originated(row.envelope).envelope.payer_envelope for row in new])
        for answer in answers:
            place = answer.sequence_id - 1
            assert self.digests[place : place + 1] == [answer.digest], answer

    def check_all(self) -> None:
        """Fail unless every envelope is there as it was when it was first seen."""
        assert [digest_of(row.envelope) for row in self._rows_after(0)] == self.digests

    def _add(self, row: StoredEnvelope) -> None:
        assert row.sequence_id == len(self.digests) + 1
        assert row.originator_ns > self.last_ns
        signed = parse_originated(row.envelope)
        assert recover_originator(signed) == KEY.public_key
        assert signed.envelope.originator_id == NODE_ID
        assert signed.envelope.sequence_id == row.sequence_id
        assert signed.envelope.originator_ns == row.originator_ns
        self.digests.append(digest_of(row.envelope))
        self.last_ns = row.originator_ns

    def _rows_after(self, sequence_id: int) -> list[StoredEnvelope]:
        try:
            store = Store.open_existing(self.location)
        except StoreError:
            # Killed before it had made the tables.
            assert not self.digests
            return []
        with store.reading() as connection:
            cursor = {NODE_ID: sequence_id}
            rows = read_by_originators(connection, [NODE_ID], cursor, ALL, 0)
        store.close()
        return rows


def check_requests(payloads: Sequence[bytes]) -> None:
    """Fail unless the payloads of each request stand together, from the first to the last."""
    request, place, total = "", 0, 0
    for payload in payloads:
        name, _, position = payload.decode().partition(" ")
        if place == total:
            request, place = name, 0
        place, total = place + 1, int(position.partition("/")[2])
        assert (name, position) == (request, f"{place}/{total}")
    assert place == total


@pytest.fixture(scope="module")
def sequencer() -> Iterator[MortalSequencer]:
    with MortalSequencer() as running:
        yield running


@pytest.fixture(scope="module")
def rival() -> Iterator[MortalSequencer]:
    with MortalSequencer() as running:
        yield running


@pytest.fixture
def log(database_url: str, tmp_path: Path) -> Log:
    return Log(database_url, tmp_path / "sequence-record")


@pytest.fixture
def copy(log: Log, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Copies the database as an operator does, and returns where the copy can be opened."""
    url = make_url(log.location)
    if url.database is not None and url.get_backend_name() == "sqlite":
        return lambda: copy_sqlite(str(url.database), tmp_path)
    server: Postgres = request.getfixturevalue("postgres")
    return lambda: copy_postgres(server, str(url.database))


def copy_sqlite(database: str, folder: Path) -> str:
    backup, restored = str(folder / "backup.db"), str(folder / "restored.db")
    for words in (
        ("backup", "--database", database, "--out", backup),
        ("restore", backup, "--database", restored),
    ):
        done = run("index", *words)
        assert done.code == 0, done.err
    return restored


def copy_postgres(server: Postgres, database: str) -> str:
    url = server.new_database()
    copied = make_url(url).database
    server.drop_database(url)
    # Its copy needs the database to itself.
    server.kill_connections()
    server.execute(f"CREATE DATABASE {copied} TEMPLATE {database}")
    return url


@pytest.mark.conforms("N6", "N7", "N8")
def test_originate__killed_at_random_moments_under_load__no_gap_and_no_second_signature(
    sequencer: MortalSequencer, log: Log
) -> None:
    for _ in range(KILLS):
        sequencer.begin(log.next_life())
        answers: list[Answer] = []
        # 0: while it opens the database.
        if wanted := log.some():
            assert sequencer.opens()
            answers = sequencer.answers(wanted - 1)
        answers += sequencer.kill()
        log.check(answers)

    log.check_all()
    assert len(log.digests) > KILLS


@pytest.mark.conforms("N7")
def test_originate__second_process_on_the_database__is_refused_and_takes_over_after_a_kill(
    sequencer: MortalSequencer, rival: MortalSequencer, log: Log
) -> None:
    active, waiting = sequencer, rival
    active.begin(log.next_life())
    assert active.opens()
    waiting.begin(log.next_life())
    assert not waiting.opens()
    assert "expected no other indexer" in waiting.refusal

    for _ in range(TAKEOVERS):
        waiting.begin(log.next_life())
        answers = active.answers(log.some())
        answers += active.kill()
        # SQLite's lock is not waited for: it may have been refused while the other was alive.
        if not waiting.opens():
            waiting.begin(log.next_life())
            assert waiting.opens()
        log.check(answers)
        active, waiting = waiting, active
    log.check(active.kill())
    log.check_all()


@pytest.mark.conforms("N7")
def test_originate__database_restored_from_an_older_copy__refuses_and_can_resume_behind_it(
    sequencer: MortalSequencer, log: Log, copy: Callable[[], str]
) -> None:
    live_and_die(sequencer, log)
    restored = copy()
    live_and_die(sequencer, log)
    lost = len(log.digests)

    with pytest.raises(DatabaseOlder, match="which it has signed, got up to"):
        originate(log, restored)
    assert originate(log, restored, resume_after=lost) == lost + 1
    assert originate(log, restored) == lost + 2


def live_and_die(sequencer: MortalSequencer, log: Log) -> None:
    sequencer.begin(log.next_life())
    assert sequencer.opens()
    answers = sequencer.answers(MOST_ANSWERS)
    log.check(answers + sequencer.kill())


def originate(log: Log, location: str, resume_after: int = 0) -> int:
    """Return the sequence id of a payload that is published to a database."""
    store = Store.open(location, IDENTITY)
    record = SequenceRecord(log.record, resume_after)
    sequencer = Sequencer(store, lambda: NODE_ID, KEY, lambda: NOON_NS, lambda rows: None, record)
    try:
        [envelope] = sequencer.submit([NewEnvelope(TOPIC, b"after", None)]).result(30)
    finally:
        sequencer.close()
        record.close()
        store.close()
    return parse_originated(envelope).envelope.sequence_id
