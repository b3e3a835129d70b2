"""Brings one group up to date: its topic is read, and what the chain confirms is applied.

A payload of the chain counts where the chain has it exactly so. It is looked up again in each round
until it is final: where a reorg took it back, the group goes back, and the topic is read from its
beginning. Groups apply nothing twice, so that costs time and nothing else.

A payload that the chain does not have is doubted, and left out: another node may serve another one
in its place. It is looked up again in the next rounds: the chain's endpoint may lag behind nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from chainkit.types import BlockReference, Place
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.payload import Outcome, Payload, group_topic
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.standing import Standing
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage.evidence import keep_envelopes, read_topic
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Applied, Followed, Topic

MOST_READS: Final = 4
"""How often a topic is read in one round; the next round goes on."""

MOST_DOUBTED: Final = 100
"""Each is looked up once in a round; the oldest is forgotten where there are more."""


@dataclass(slots=True)
class Round:
    """The outcome of one round."""

    outcomes: list[Outcome] = field(default_factory=list)
    """Those of the payloads that were applied."""
    reorgs: int = 0
    """How often payloads of the chain were taken back."""
    waits_for_chain: bool = False
    """A payload is served that the chain does not have yet, or not any more."""


@dataclass(frozen=True, slots=True)
class _Stands:
    envelope: VerifiedEnvelope
    block: BlockReference


class GroupSync:
    """One group, on one event loop."""

    def __init__(
        self, session: NetworkSession, store: Store, groups: Groups, group_id: bytes
    ) -> None:
        """Take the session, the client's database and groups, and the group's id."""
        self._session = session
        self._store = store
        self._groups = groups
        self._group_id = group_id
        self._standing: dict[Place, _Stands] = {}
        """Payloads of the chain that were applied and are not final, by place."""
        self._doubted: dict[bytes, tuple[VerifiedEnvelope, Standing]] = {}
        """Payloads that the chain does not have, by digest."""
        final = groups.last_final(group_id)
        self._final = dict.fromkeys(session.keys.chain_ids, final)
        """The last id of each originator of the chain that is final."""
        self._begin()

    @property
    def topic(self) -> Topic:
        """The group's topic, as far as it was read."""
        return self._topic

    async def sync(self) -> Round:
        """Do one round. Raises NodesSilent, ChainError, EngineFailed, StoreError, ReorgTooDeep."""
        done = Round(reorgs=int(await self._take_back()))
        await self._look_up_doubted()
        for _ in range(MOST_READS):
            found = await self._read()
            self._pending += found.applied
            if not await self._settle_conflicts(found):
                # The chain changed since the round began.
                done.reorgs += await self._take_back()
            elif await self._apply(done):
                break
            self._begin()
        done.waits_for_chain = any(
            standing is Standing.ABSENT for _, standing in self._doubted.values()
        )
        await self._finalize()
        return done

    def _begin(self) -> None:
        """Begin with what is kept of the topic, without what is doubted."""
        self._topic = Topic(group_topic(self._group_id), doubted=self._doubted.keys())
        self._reader = self._session.reader(self._topic)
        self._pending: list[Applied] = []
        self._handed_in: dict[Place, Payload] = {}
        """Payloads of the chain that the group was given, and that are not final."""
        with self._store.reading() as connection:
            kept = read_topic(connection, self._topic.topic)
        keys, now_ns = self._session.keys, self._session.now_ns()
        for server_id, envelopes in groupby(kept, self._session.server_of):
            if server_id is not None:
                self._topic.hold(envelopes, server_id, keys, now_ns)

    def _doubt(self, envelope: VerifiedEnvelope, standing: Standing) -> None:
        self._doubted[envelope.digest] = envelope, standing
        if len(self._doubted) > MOST_DOUBTED:
            del self._doubted[next(iter(self._doubted))]

    async def _look_up_doubted(self) -> None:
        """Take what the chain has by now."""
        confirmed = []
        for digest, (envelope, standing) in list(self._doubted.items()):
            if standing is Standing.ABSENT:
                found = await self._session.find(envelope)
                if found.standing is Standing.CONFIRMED:
                    confirmed.append(digest)
        for digest in confirmed:
            del self._doubted[digest]
        if confirmed:
            self._begin()

    async def _settle_conflicts(self, found: Followed) -> bool:
        """Let the chain decide between two payloads in one place; tell whether the held one stays.

        The held one is looked up when it is applied.
        """
        confirmed = []
        for conflict in found.conflicts:
            standing = (await self._session.find(conflict.served)).standing
            if standing is Standing.CONFIRMED:
                confirmed.append(conflict.served)
            else:
                self._doubt(conflict.served, standing)
        if confirmed:
            with self._store.writing() as connection:
                keep_envelopes(connection, confirmed)
        return not confirmed

    async def _read(self) -> Followed:
        # A node may have left out a payload of the chain between others, or served what a reorg
        # took back: what is not final is read again, from all that are asked.
        self._topic.read_again = {
            each: self._final.get(each, 0) + 1 for each in self._session.keys.chain_ids
        }
        found = await self._reader.read()
        self._session.keep(found.breaches)
        # Also those that wait: another node may hide them by the next time.
        if found.accepted:
            with self._store.writing() as connection:
                keep_envelopes(connection, found.accepted)
        return found

    async def _take_back(self) -> bool:
        """Look up what is not final; return whether the chain took something back.

        Where another process left the group elsewhere, the topic is handed in again.
        """
        gone = []
        there = await self._still_there(self._standing.values())
        for place, stands in list(self._standing.items()):
            if stands.block in there:
                continue
            found = await self._session.find(stands.envelope)
            if found.standing is Standing.CONFIRMED and found.block is not None:
                self._standing[place] = _Stands(stands.envelope, found.block)
            else:
                self._doubt(stands.envelope, found.standing)
                gone.append(stands.envelope)
        if not gone:
            if not await self._have_applied():
                self._begin()
            return False
        payloads = list(map(Payload.of, gone))
        await asyncio.to_thread(self._groups.take_back, self._group_id, payloads)
        for originator_id, first in _lowest(each.place for each in gone).items():
            for place in [each for each in self._standing if each[0] == originator_id]:
                if place[1] >= first:
                    del self._standing[place]
        self._begin()
        return True

    async def _apply(self, done: Round) -> bool:
        """Apply what is next, up to a payload of the chain that is not confirmed: it is doubted.

        Returns whether there was none. A payload of the chain that comes late takes the group back
        to before it; then all that lies behind it is to be handed in again.
        """
        ready: list[Applied] = []
        for each in self._pending:
            if not await self._stands(each.envelope):
                break
            ready.append(each)
        is_all = len(ready) == len(self._pending)
        self._pending = self._pending[len(ready) :]
        payloads = [_payload(each) for each in ready if not each.is_copy]
        try:
            done.outcomes += await asyncio.to_thread(self._groups.apply, self._group_id, payloads)
        except BaseException:
            # They are read again: groups apply nothing twice.
            self._begin()
            raise
        for payload in payloads:
            if payload.place in self._standing:
                self._handed_in[payload.place] = payload
        return is_all and await self._have_applied()

    async def _have_applied(self) -> bool:
        """Tell whether the group is where this object took it: other processes apply, too."""
        given = list(self._handed_in.values())
        return await asyncio.to_thread(self._groups.have_applied, given)

    async def _stands(self, envelope: VerifiedEnvelope) -> bool:
        """Tell whether an envelope is a node's own, or the chain has it; if not, it is doubted."""
        known = self._standing.get(envelope.place)
        is_known = known is not None and known.envelope.digest == envelope.digest
        if envelope.transaction_hash is None or is_known:
            return True
        if await self._was_final(envelope):
            return True
        found = await self._session.find(envelope)
        if found.standing is not Standing.CONFIRMED or found.block is None:
            self._doubt(envelope, found.standing)
            return False
        self._standing[envelope.place] = _Stands(envelope, found.block)
        return True

    async def _was_final(self, envelope: VerifiedEnvelope) -> bool:
        """Tell whether the group has applied exactly this, and it is final."""
        if envelope.sequence_id > self._final.get(envelope.originator_id, 0):
            return False
        return await asyncio.to_thread(self._groups.have_applied, [Payload.of(envelope)])

    async def _finalize(self) -> None:
        """Let the group forget what no reorg takes back any more."""
        if not self._standing:
            return
        final = await asyncio.to_thread(self._session.chain.final)
        if final is None:
            return
        passed = {
            place: each
            for place, each in self._standing.items()
            if each.block.number <= final.number
        }
        there = await self._still_there(passed.values())
        # A reorg may have come since they were looked up: the next round takes them back.
        is_right = all(each.block in there for each in passed.values())
        if passed and is_right and await self._have_applied():
            highest = max(sequence_id for _, sequence_id in passed)
            await asyncio.to_thread(self._groups.finalize, self._group_id, highest)
            for place in passed:
                del self._standing[place]
                self._handed_in.pop(place, None)
                self._final[place[0]] = max(place[1], self._final.get(place[0], 0))

    async def _still_there(self, standing: Iterable[_Stands]) -> frozenset[BlockReference]:
        """Return the blocks of payloads that the chain has now."""
        blocks = {each.block for each in standing}
        if not blocks:
            return frozenset()
        return await asyncio.to_thread(self._session.chain.still_there, blocks)


def _lowest(places: Iterable[Place]) -> dict[int, int]:
    """Return the lowest sequence id of each originator."""
    lowest: dict[int, int] = {}
    for originator_id, sequence_id in places:
        lowest[originator_id] = min(sequence_id, lowest.get(originator_id, sequence_id))
    return lowest


def _payload(applied: Applied) -> Payload:
    missing = ", ".join(f"{number} of originator {one}" for one, number in applied.without)
    return Payload.of(applied.envelope, f"without {missing}" if missing else "")
