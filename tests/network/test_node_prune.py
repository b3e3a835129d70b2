"""``chainkit node prune`` on each kind of database, beside the process that has its lock."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import Popen

import pytest
from sqlalchemy import func, select

from chainkit.protocol.topic_heads import Entry, entry_of
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage.gaps import (
    GapRow,
    GapState,
    change_gaps,
    fill_gaps,
    insert_gap,
    read_filled_after,
)
from chainkit_node.storage.learned_ids import LEARNED
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report
from chainkit_node.storage.pruned_entries import insert_pruned_entries, read_pruned_entries
from chainkit_node.storage.range_digests import store_ranges
from chainkit_node.storage.storage_looks import DatabaseSize, Growth, read_growth, write_look
from chainkit_node.storage.stored_bytes import DAY_SECONDS, NEVER, estimate_bytes
from localnet import commands
from support import publishes
from support.command_line import Outcome, run
from support.network.expired_logs import EXPIRY, attest, held_ids, hold_expired, pruned_ids
from support.network.held_logs import PEER, take
from support.network.originator import BEGIN_NS, Originator
from support.network.real_nodes import until
from support.reporting import ACCUSED, KEYS, OWN, Host

COUNT, COVERED = 200, 150
SECONDS = 120.0
EXPIRED = {each for each in range(1, COUNT + 1) if each % 7}
"""Ids up to 192 are in complete leaves."""
OWN_TOPIC = TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)
HELD_BYTES = select(func.sum(func.length(envelopes.c.envelope)))


@pytest.fixture
def host(database_url: str) -> Iterator[Host]:
    with closing(hold_expired(database_url, COUNT, COVERED)) as host:
        yield host


def pruned(database_url: str, *words: object) -> Outcome:
    return run("node", "prune", "--database", database_url, "--json", *words)


def started(database_url: str, log: Path, batch: int) -> Popen[bytes]:
    """Start the command in a process of its own."""
    words = ("node", "prune", "--database", database_url, "--json", "--batch", str(batch))
    with log.open("wb") as file:
        return commands.start_command(words, os.environ, file)


def faults(database_url: str) -> object:
    verified = run("node", "verify", "--database", database_url, "--json").content
    return verified["faults"]


@pytest.mark.conforms("T5", "T7", "T8", "T9")
def test_prune__beside_the_process_that_writes__deletes_what_is_covered(
    host: Host, database_url: str
) -> None:
    gone = {each for each in EXPIRED if each <= COVERED}

    counted = pruned(database_url, "--dry-run").content
    assert held_ids(host) == set(range(1, COUNT + 1))
    done = pruned(database_url, "--batch", 50).content

    assert held_ids(host) == set(range(1, COUNT + 1)) - gone
    assert pruned_ids(host) == gone
    [counts] = done["originators"]
    assert counts["originator_id"] == ACCUSED and counts["covered_through"] == COVERED
    assert counts["kinds"]["group_message"]["envelopes"] == done["envelopes"] == len(gone)
    assert (done["given_back_bytes"] is None) == database_url.startswith("postgresql")
    kept = counted["originators"][0].pop("kept")
    assert kept == {"not_attested": len([each for each in EXPIRED if each > COVERED])}
    assert counts.pop("kept") is None
    assert counted == done | {"dry_run": True, "given_back_bytes": None}
    assert faults(database_url) == []

    # The process that writes goes on: what was pruned does not come back, and ids follow.
    take(host, [PEER.signed(each, each) for each in (1, COUNT + 1)])
    assert held_ids(host) == set(range(1, COUNT + 2)) - gone
    attest(host, COVERED + 1, COUNT)
    assert pruned(database_url).content["envelopes"] == len([n for n in EXPIRED if 150 < n <= 192])
    assert faults(database_url) == []


def test_prune__in_words__says_what_went_and_why_nothing_more(
    host: Host, database_url: str
) -> None:
    first, again = (run("node", "prune", "--database", database_url) for _ in range(2))

    assert first.code == again.code == 0
    assert f"attested up to id {COVERED}" in first.out
    assert f"originator {ACCUSED}: nothing; attested up to id {COVERED}" in again.out
    assert "deleted 0 envelopes, 0 bytes" in again.out


def hold_own(host: Host) -> list[Entry]:
    """Store a log of the node itself that may go but for its last id; return its entries."""
    node = Originator(OWN, KEYS[OWN])
    signed = {each: node.signed(each, expiry=EXPIRY) for each in range(1, 66)}
    rows = [StoredEnvelope(OWN, n, BEGIN_NS, OWN_TOPIC, EXPIRY, data) for n, data in signed.items()]
    with host.store.writing() as connection:
        host.store.insert_envelopes(connection, rows)
        while store_ranges(connection, OWN, 100):
            pass
        insert_report(connection, StoredPayerReport(OWN, 1, 65, b"", b"", b"", 1, 1))
    return [entry_of(signed[each]) for each in range(1, 65)]


def test_prune__own_log__keeps_the_entries_of_its_heads(host: Host, database_url: str) -> None:
    entries = hold_own(host)
    # A run that was ended before it deleted anything has left some.
    left = [(OWN_TOPIC, OWN, n, EXPIRY, digest) for n, digest, _ in entries[:9]]
    with host.store.writing() as connection:
        insert_pruned_entries(host.store.insert_new, connection, left)

    assert pruned(database_url).code == 0

    with host.store.reading() as connection:
        assert read_pruned_entries(connection, OWN_TOPIC, OWN, 0, 100) == entries


def test_prune__two_at_once__delete_each_envelope_once_and_both_end(
    host: Host, database_url: str, tmp_path: Path
) -> None:
    entries = hold_own(host)
    gone = {each for each in EXPIRED if each <= COVERED}

    logs = [tmp_path / "one.json", tmp_path / "other.json"]
    processes = [started(database_url, each, 2) for each in logs]
    codes = [each.wait(SECONDS) for each in processes]

    said = [each.read_text() for each in logs]
    assert codes == [0, 0], said
    # The log has the lines of progress of a run that takes long, too.
    deleted = [json.loads(each[each.index("{") :])["envelopes"] for each in said]
    assert sum(deleted) == len(gone) + len(entries)
    assert pruned_ids(host) == gone
    with host.store.reading() as connection:
        assert read_pruned_entries(connection, OWN_TOPIC, OWN, 0, 100) == entries
    assert faults(database_url) == []


def test_estimate__on_each_database__is_exact_for_few_envelopes(host: Host) -> None:
    with host.store.writing() as connection:
        found = estimate_bytes(connection, random.Random(1))
        held = connection.scalar(HELD_BYTES)
        write_look(connection, DatabaseSize(0, 10**9, 10**10), found)
        write_look(connection, DatabaseSize(24, 3 * 10**9, 8 * 10**9), found)
        growth = read_growth(connection, DatabaseSize(24, 3 * 10**9, 8 * 10**9))

    assert sum(found.kinds.values()) == sum(found.payers.values()) == held
    assert len(found.payers) == 1 and b"" not in found.payers
    assert set(found.days) == {EXPIRY // DAY_SECONDS, NEVER}
    assert growth == Growth(2 * 10**9, 4 * DAY_SECONDS)


def test_learned__ids_of_each_database__are_kept_counted_and_filled(host: Host) -> None:
    with host.store.writing() as connection:
        insert_gap(connection, GapRow(OWN, 1, 9, GapState.ASKED, 1))
        change_gaps(connection, OWN, range(2, 5), GapState.EXPIRED, [GapState.ASKED], 2)
        fill_gaps(connection, OWN, [3], 3)

        assert list(LEARNED.runs(connection, OWN, range(1, 99))) == [range(2, 3), range(4, 5)]
        assert LEARNED.last_id(connection, OWN) == 4
        assert [each.first_id for each in read_filled_after(connection, 2)] == [3]


def test_prune__killed_at_any_moment__has_deleted_whole_batches_of_what_was_covered(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'node.db'}"
    with closing(hold_expired(url, 200, 190)) as host:
        gone = {each for each in range(1, 191) if each % 7}
        for part in (20, 60):
            command = started(url, tmp_path / "log", 1)
            until(lambda part=part: len(held_ids(host)) <= 200 - part)
            command.kill()
            command.wait(SECONDS)

            assert pruned_ids(host) <= gone
            assert held_ids(host) == set(range(1, 201)) - pruned_ids(host)
        assert faults(url) == []

        assert pruned(url).code == 0
        assert pruned_ids(host) == gone
        assert faults(url) == []


def test_prune__no_database__is_refused_and_none_is_made(tmp_path: Path) -> None:
    file = tmp_path / "none.db"

    refused = pruned(str(file))

    assert (refused.code, file.exists()) == (2, False)
