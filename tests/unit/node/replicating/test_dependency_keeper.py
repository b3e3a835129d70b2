"""All logs as a real database knows them, and the reports of envelopes that wait."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from chainkit.errors import StoreError
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit_node.replicating.dependencies import MOST_WAITING, Compared, KnownLogs
from chainkit_node.replicating.dependency_keeper import DependencyKeeper, StoredLogs
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from support.chains.fake_chain import Post
from support.network.originator import BEGIN_NS, Originator
from support.network.simulation.loop import run
from support.reporting import ACCUSED, KEYS, LISTING, OTHER, OWN, Host

ONE = Originator(ACCUSED, KEYS[ACCUSED])
DIRECT = Source(ONE.node_id, ONE.key.public_key, is_direct=True)


def test_known__a_chain_and_other_logs__all_that_is_or_was_held(host: Host) -> None:
    host.chain.mine([Post("one"), Post("two")])
    for _ in range(3):
        host.chain.mine([])
    host.indexer.catch_up()
    host.chain.mine([Post("three"), Post("four")])
    host.indexer.catch_up()
    intake = Intake(
        host.store,
        host.writer,
        lambda: BEGIN_NS,
        lambda *_: None,
        lambda _: None,
        UngivenIds(lambda: None, lambda: True),
    )
    intake.take(ONE.log(3), DIRECT)
    logs = StoredLogs(host.store, lambda: LISTING, lambda: True)
    before = logs.known()

    host.chain.fork(1, [], [])
    host.indexer.catch_up()
    after = logs.known()

    assert before.held == after.held == {0: 4, ACCUSED: 3}
    assert 0 < before.final_ns < after.final_ns
    assert (before.chain_ids, before.node_ids, before.own_id) == ({0}, {OWN, ACCUSED, OTHER}, OWN)


def test_known__a_chain_that_was_not_followed__is_final_nowhere(host: Host) -> None:
    assert StoredLogs(host.store, lambda: LISTING, lambda: True).known() == KnownLogs(
        {0: 0}, frozenset({0}), frozenset(LISTING.nodes), OWN, 0
    )


KNOWN = KnownLogs({OTHER: 4}, (), (OWN, ACCUSED, OTHER), OWN, 0)


@dataclass
class Setting:
    """A keeper and what it tells; the logs are not read while the database is away."""

    logs: KnownLogs = KNOWN
    stored: Sequence[ReceivedEnvelope] = ()
    is_away: bool = False
    reads: int = 0
    dropped: int = 0
    reports: list[tuple[int, Misbehavior, Sequence[bytes]]] = field(default_factory=list)
    hurried: list[tuple[float, int]] = field(default_factory=list)

    def known(self) -> KnownLogs:
        self.reads += 1
        if self.is_away:
            raise StoreError("database", "an answer", "none")
        return self.logs

    def recent(self) -> Sequence[ReceivedEnvelope]:
        return self.stored

    def drop(self) -> None:
        self.dropped += 1

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        self.reports.append((node_id, misbehavior, envelopes))

    def made(self) -> DependencyKeeper:
        return DependencyKeeper(self, self, asyncio.get_running_loop().time, self.drop)


def test_take__envelopes_that_name_what_is_held__the_database_is_seldom_asked() -> None:
    async def story() -> None:
        setting = Setting()
        keeper = setting.made()
        for number in range(1, 50):
            keeper.take([ONE.received(ONE.signed(number, seen={OTHER: random.randint(1, 4)}))])

        assert setting.reads == 1
        assert keeper.waiting() == 0

    run(story())


@pytest.mark.conforms("N48")
def test_run__what_is_named_is_missing__is_asked_for_after_a_minute_and_then_reported() -> None:
    async def story() -> None:
        setting = Setting()
        keeper = setting.made()
        received = ONE.received(ONE.signed(1, seen={OTHER: 5}))
        loop = asyncio.get_running_loop()

        def hurry(node_id: int) -> None:
            setting.hurried.append((loop.time(), node_id))
            setting.is_away = False
            keeper.compared(Compared(node_id, OTHER, loop.time(), 4, is_settled=True))

        keeper.take([received])
        assert keeper.waiting() == 1
        task = asyncio.ensure_future(keeper.run(hurry))
        await asyncio.sleep(30)
        setting.is_away = True
        await asyncio.sleep(20)
        setting.is_away = False
        await asyncio.sleep(30)
        assert not task.done()
        task.cancel()

        assert setting.hurried == [(60.0, ACCUSED), (60.0, OTHER)]
        assert setting.reports == [(ACCUSED, Misbehavior.CAUSAL_ORDERING, (received.envelope,))]
        assert keeper.waiting() == 0

    run(story())


@pytest.mark.conforms("N48")
def test_run__after_a_restart__what_is_stored_and_names_what_is_missing_waits_again() -> None:
    async def story() -> None:
        stored = [ONE.received(ONE.signed(each, seen={OTHER: each})) for each in (4, 5)]
        setting = Setting(stored=stored)
        keeper = setting.made()

        def hurry(node_id: int) -> None:
            keeper.compared(
                Compared(node_id, OTHER, asyncio.get_running_loop().time(), 4, is_settled=True)
            )

        task = asyncio.ensure_future(keeper.run(hurry))
        await asyncio.sleep(80)
        task.cancel()

        assert [each[2] for each in setting.reports] == [(stored[1].envelope,)]

    run(story())


def test_recent__a_long_log__is_the_end_of_it(host: Host) -> None:
    intake = Intake(
        host.store,
        host.writer,
        lambda: BEGIN_NS,
        lambda *_: None,
        lambda _: None,
        UngivenIds(lambda: None, lambda: True),
    )
    log = ONE.log(MOST_WAITING + 7)
    intake.take(log, DIRECT)

    recent = list(StoredLogs(host.store, lambda: LISTING, lambda: True).recent())

    assert [each.envelope for each in recent] == log[7:]


def test_take__too_many_wait__each_that_goes_is_counted() -> None:
    async def story() -> None:
        setting = Setting()
        keeper = setting.made()
        keeper.take([ONE.received(ONE.signed(each, seen={OTHER: 5})) for each in range(1, 104)])

        assert (keeper.waiting(), setting.dropped) == (100, 3)

    run(story())


@pytest.mark.conforms("N48")
def test_take__two_that_name_each_other__both_are_reported() -> None:
    async def story() -> None:
        setting = Setting()
        keeper = setting.made()
        other = Originator(OTHER, KEYS[OTHER])
        first = ONE.received(ONE.signed(1, seen={OTHER: 5}))
        second = other.received(other.signed(5, seen={ACCUSED: 1}))
        keeper.take([first])
        setting.logs = replace(setting.logs, held={OTHER: 5, ACCUSED: 1})
        keeper.take([second])
        task = asyncio.ensure_future(keeper.run(lambda _: None))
        await asyncio.sleep(6)
        task.cancel()

        assert [each[0] for each in setting.reports] == [ACCUSED, OTHER]

    run(story())
