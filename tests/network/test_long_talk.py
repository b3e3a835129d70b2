"""Four people in three groups among three nodes and a gateway, one of which lies: an hour of talk.

The hour has four quarters, in each of which another one lies, a way each minute. A minute is as
long as its talk takes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random

import pytest

from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.signed import take_apart
from chainkit.types import TopicKind
from chainkit_client.cli.opened import PASSING
from chainkit_client.cli.reports import make_folder, new_reporter, write_reports
from chainkit_client.groups.history import read_epochs
from chainkit_client.messenger import Messenger, NotSettled
from chainkit_client.storage.evidence import KeptBreach
from chainkit_client.storage.schema import DeliveryStatus, MessageKind
from support.chains.chain import Deployment
from support.command_line import run
from support.network.among_liars import NODES, AmongLiars, among_liars
from support.network.drill import Drill
from support.network.lies_to_clients import FalselySigned, GatewayLies, NodeLies
from support.network.people import People, texts
from support.seeds import only_in_soak

MINUTES = 15
"""Those of one quarter."""
NAMES = ("ann", "ben", "cat", "dan")
GROUPS = (("ann", "ben", "cat"), ("ben", "cat", "dan"), ("dan", "ann", "cat"))
"""The first one of each makes the group. Ben comes to the third one later."""
LATE_MINUTE, LATE_NAME = 5, "ben"
RESTART_EVERY, REORG_EVERY, KILL_EVERY = 3, 4, 5
REORG_BLOCKS = 2
WAITED_SECONDS = 20.0
"""How long a minute waits for what a liar holds up; the next minutes go on with it."""
SETTLE_SECONDS = 240.0
QUARTER_SECONDS = 3600.0

pytestmark = [only_in_soak, pytest.mark.timeout(4200)]


@pytest.fixture
def liars(local_deployment: Deployment, tmp_path: Path) -> Iterator[AmongLiars]:
    with among_liars(local_deployment, tmp_path) as running:
        yield running


@dataclass
class Talk:
    """The people, their groups, and what each member must have at the end."""

    liars: AmongLiars
    people: People
    chance: Random
    clients: dict[str, Messenger] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    groups: list[bytes] = field(default_factory=list)
    members: list[list[str]] = field(default_factory=list)
    wanted: list[dict[str, set[bytes]]] = field(default_factory=list)
    """By group and member: the ids of texts that were sent while that one was a member."""

    async def begin(self) -> None:
        """Register all, and make the groups."""
        for name in NAMES:
            self.clients[name], self.addresses[name] = await self.people.register(name)
        for maker, *others in GROUPS:
            client = self.clients[maker]
            group_id = await client.create_group([self.addresses[each] for each in others])
            await client.settle()
            self.groups.append(group_id)
            self.members.append([maker, *others])
            self.wanted.append({each: set() for each in NAMES})
        for client in self.clients.values():
            await client.sync()

    async def minute(self, number: int) -> None:
        """Send texts and commits, and bring as much of it to all as the liar lets through."""
        for place, group_id in enumerate(self.groups):
            for name in self.members[place]:
                sent = self.clients[name].send(group_id, f"{name} in minute {number}")
                for each in self.members[place]:
                    self.wanted[place][each].add(sent)
        place = self.chance.randrange(len(self.groups))
        committer = self.chance.choice(self.members[place])
        self.clients[committer].update_keys(self.groups[place])
        await asyncio.gather(*map(self._bring, NAMES))
        self.see_who_joined()
        if number % RESTART_EVERY == 0:
            name = self.chance.choice(NAMES)
            self.clients[name] = await self.people.restart(name)
        if number % REORG_EVERY == 0:
            drill = Drill(self.liars.network, [], self.people.folder)
            await asyncio.to_thread(drill.reorganise, REORG_BLOCKS, number % 2, seed=number)

    async def invite_late(self) -> None:
        """Add somebody to the last group, who is in it as soon as the liar lets it happen."""
        maker = self.clients[self.members[-1][0]]
        while True:
            with suppress(*PASSING):
                await maker.add(self.groups[-1], [self.addresses[LATE_NAME]])
                return

    def see_who_joined(self) -> None:
        """Count the invited in once the last group is theirs."""
        groups = self.clients[LATE_NAME].groups()
        is_in = any(each.id == self.groups[-1] and each.epoch is not None for each in groups)
        if is_in and LATE_NAME not in self.members[-1]:
            self.members[-1].append(LATE_NAME)

    async def settle(self, name: str) -> None:
        """Sync until nothing of a person waits; errors that may pass are tried again."""
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            try:
                return await self.clients[name].settle(max(until - time.monotonic(), 1))
            except PASSING:
                if time.monotonic() > until:
                    raise

    async def _bring(self, name: str) -> None:
        with suppress(NotSettled, *PASSING):
            await self.clients[name].settle(WAITED_SECONDS)
        with suppress(*PASSING):
            await self.clients[name].sync()

    async def end(self) -> None:
        """Bring all to all, once nobody lies any more."""
        await asyncio.gather(*map(self.settle, NAMES))
        until = time.monotonic() + SETTLE_SECONDS
        while self.faults() and time.monotonic() < until:
            await asyncio.gather(*(each.sync() for each in self.clients.values()))
            self.see_who_joined()

    def faults(self) -> list[str]:
        """Return what somebody lacks, or has otherwise than the others."""
        found = [] if LATE_NAME in self.members[-1] else [f"{LATE_NAME} has not joined"]
        for place, group_id in enumerate(self.groups):
            members = self.members[place]
            sent = {
                each.id
                for name in members
                for each in self.clients[name].messages(group_id)
                if each.kind is MessageKind.APPLICATION
                and each.sender == self.clients[name].installation.public_key
                and each.delivery is DeliveryStatus.PUBLISHED
            }
            for name in members:
                client = self.clients[name]
                shown = {each.id for each in client.messages(group_id)}
                lacking = len((self.wanted[place][name] & sent) - shown)
                if lacking or len(texts(client, group_id)) != len(set(texts(client, group_id))):
                    found.append(f"group {place}, {name}: lacks {lacking} texts, or has one twice")
            orders = {name: self._commits(self.clients[name], group_id) for name in members}
            common = set.intersection(*(set(each) for each in orders.values()))
            last = {max(each, default=-1) for each in orders.values()}
            same = len({tuple(each[number] for number in common) for each in orders.values()})
            if len(last) != 1 or same != 1:
                found.append(f"group {place}: epochs {last}, {same} orders of commits")
            forks = [
                (name, group.forked_at_epoch)
                for name in members
                for group in self.clients[name].groups()
                if group.id == group_id and group.forked_at_epoch is not None
            ]
            if forks:
                found.append(f"group {place}: forks {forks}")
        return found

    @staticmethod
    def _commits(client: Messenger, group_id: bytes) -> dict[int, bytes]:
        with client._store.reading() as connection:
            epochs = read_epochs(connection, group_id)
        return {each.number: each.authenticator for each in epochs}

    def breaches(self) -> list[KeptBreach]:
        """Return the broken rules that anybody has seen."""
        return [each for client in self.clients.values() for each in client.breaches()]


def quarter(liars: AmongLiars, lies_of: Callable[[Talk], NodeLies | GatewayLies]) -> None:
    """Play a quarter of an hour."""

    async def play(people: People) -> None:
        talk = Talk(liars, people, Random(48))
        await talk.begin()
        lies = lies_of(talk)
        proved = [*lies.proved().items()] if isinstance(lies, NodeLies) else []
        # A client that has a proof asks the liar no more: the proofs come last, in turns.
        first = liars.network.nodes.index(lies.node) if isinstance(lies, NodeLies) else 0
        minutes = [*islice(cycle(lies.unproved().items()), MINUTES - len(proved))]
        minutes += proved[first:] + proved[:first]
        for number, (name, lie) in enumerate(minutes, 1):
            print(f"minute {number}: {name}, {time.monotonic():.0f} s", flush=True)
            stop_lying(liars)
            lie()
            if number == LATE_MINUTE:
                await talk.invite_late()
            if number % KILL_EVERY == 0:
                node = talk.chance.choice(liars.network.nodes)
                await asyncio.to_thread(node.kill)
                await talk.minute(number)
                await asyncio.to_thread(node.restart)
            else:
                await talk.minute(number)
        stop_lying(liars)
        if isinstance(lies, NodeLies):
            for place in lies.signed.places:
                await asyncio.to_thread(liars.outgrow, place)
        await talk.end()
        check(talk, lies)

    liars.play(play, QUARTER_SECONDS)


def stop_lying(liars: AmongLiars) -> None:
    for proxy in (*liars.proxies.values(), liars.gateway):
        proxy.answers.clear()


def check(talk: Talk, lies: NodeLies | GatewayLies) -> None:
    """Fail unless all have all, and the liar alone is accused, of all that it signed falsely."""
    assert talk.faults() == []
    liar_ids = {lies.node.node_id} if isinstance(lies, NodeLies) else set()
    breaches = talk.breaches()
    assert {each.node_id for each in breaches} <= liar_ids, [each.reason for each in breaches]
    for node in talk.liars.network.nodes:
        hosted = [take_apart(each) for each in node.api.query_reports()]
        # A machine with other work to do makes anybody slow, and a killed node is silent.
        grave = {each.node_id for each in hosted if not each.report.misbehavior.is_liveness}
        assert grave <= liar_ids
    if isinstance(lies, NodeLies):
        check_evidence(talk.liars, lies.signed, breaches, lies.node.node_id, talk.people.folder)


def check_evidence(
    liars: AmongLiars,
    signed: FalselySigned,
    breaches: Sequence[KeptBreach],
    liar_id: int,
    folder: Path,
) -> None:
    """The council takes what the clients have seen, and each kind of lie is in it."""
    reports = [(each.node_id, each.report) for each in breaches if each.report is not None]
    parsed = [parse_unsigned(report) for _, report in reports]
    shown = {envelope for each in parsed for envelope in each.envelopes}
    for lie, envelopes in signed.envelopes.items():
        assert not envelopes or shown & set(envelopes), lie
    for place in signed.places:
        assert any(f"lacks {place[1]}" in each.reason for each in breaches), place
    make_folder(folder / "evidence")
    write_reports(folder / "evidence", reports, new_reporter())
    chain = ("--rpc", liars.network.settings.rpc_url)
    record = ("--deployment", liars.network.settings.record_path)
    triage = run("council", "triage", folder / "evidence", *chain, *record, "--json")
    assert triage.code in (0, 1), triage.err
    assert triage.content["disable"] == [liar_id]


@pytest.mark.parametrize("place", range(NODES))
def test_hour_of_talk__a_node_lies__all_have_all_and_the_liar_alone_is_proved(
    liars: AmongLiars, place: int
) -> None:
    def lies_of(talk: Talk) -> NodeLies:
        topics = [TopicKind.GROUP_MESSAGE.topic(each) for each in talk.groups]
        inbox_topic = TopicKind.IDENTITY_UPDATE.topic(talk.clients[LATE_NAME].inbox_id)
        return NodeLies(liars, liars.network.nodes[place], topics, inbox_topic, Random(place))

    quarter(liars, lies_of)


def test_hour_of_talk__the_gateway_lies__all_have_all_and_nobody_is_accused(
    liars: AmongLiars,
) -> None:
    quarter(liars, lambda talk: GatewayLies(liars, Random(3)))
