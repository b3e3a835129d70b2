"""Brings one group up to date: its topic is read, and what the chain confirms is applied.

A payload of the chain counts where the chain has exactly the same payload. Each round looks the
payload up again until it is final: where a reorg took the payload back, the group goes back.

``sync_machine`` has the transitions; this module does the work of each step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from chainkit.types import BlockReference
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.payload import Outcome, Payload, group_topic
from chainkit_client.network import sync_machine
from chainkit_client.network.chain_status import ChainStatus
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.sync_machine import (
    MOST_READS,
    ConfirmedPayload,
    Event,
    LookedUp,
    Step,
    SyncState,
    transition,
)
from chainkit_client.network.topic_reader import NodesSilent, TopicReader
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage.evidence import keep_envelopes, read_topic
from chainkit_client.storage.schema import PayloadStatus
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Applied, Topic

MOST_SECOND: Final = 1_000
"""Payloads in the places of other ones that wait for their epoch; older ones are dropped."""


@dataclass(slots=True)
class Round:
    """The outcome of one round."""

    outcomes: list[Outcome] = field(default_factory=list)
    """The outcomes of applied payloads."""
    reorgs: int = 0
    """How often payloads of the chain were taken back."""
    waits_for_chain: bool = False
    """Whether a node serves a payload that the chain does not have yet, or no longer has."""


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
        # One round after the other.
        self._turn = asyncio.Lock()
        final = groups.last_final(group_id)
        self._state = SyncState(dict.fromkeys(session.keys.chain_ids, final))
        self._reader: TopicReader | None = None
        """None where the topic is to be read from its beginning."""
        self._second: list[Payload] = []
        """Payloads in the places of other ones that a node signed, and that were not applied."""

    @property
    def topic(self) -> Topic:
        """The group's topic, as far as it was read. Raises StoreError."""
        return self._begun().topic

    async def sync(self) -> Round:
        """Do one round. Raises NodesSilent, ChainError, EngineFailed, StoreError, ReorgTooDeep."""
        async with self._turn:
            done = Round()
            self._move(Event.STARTED)
            try:
                while self._state.step is not Step.IDLE:
                    event = await self._work(done)
                    done.reorgs += event is Event.TAKEN_BACK
                    self._move(event)
            except BaseException as error:
                self._move(Event.SILENT if isinstance(error, NodesSilent) else Event.FAILED)
                raise
            done.waits_for_chain = self._state.waits_for_chain
            return done

    def _move(self, event: Event) -> None:
        move = transition(self._state.step, event)
        self._state = sync_machine.moved(self._state, event)
        if move.begins_again:
            # Read again when next needed: a database that has just failed may fail here, too.
            self._reader = None

    async def _work(self, done: Round) -> Event:
        """Do the work of the step, and return the resulting event."""
        match self._state.step:
            case Step.CHECKING | Step.RECHECKING:
                return await self._check()
            case Step.LOOKING_UP:
                return await self._look_up_doubted()
            case Step.READING:
                return await self._read()
            case Step.SETTLING:
                return await self._settle_conflicts()
            case Step.CONFIRMING:
                return await self._confirm()
            case Step.APPLYING:
                return await self._apply(done)
            case _:
                return await self._finalize()

    def _begun(self) -> TopicReader:
        """Return the topic's reader; begin with the stored envelopes, except doubted ones."""
        if self._reader is not None:
            return self._reader
        topic = Topic(group_topic(self._group_id), doubted=self._state.doubted.keys())
        with self._store.reading() as connection:
            kept = read_topic(connection, topic.topic)
        keys, now_ns = self._session.keys, self._session.now_ns()
        for server_id, envelopes in groupby(kept, self._session.server_of):
            if server_id is not None:
                topic.hold(envelopes, server_id, keys, now_ns)
        self._reader = self._session.reader(topic)
        return self._reader

    async def _check(self) -> Event:
        """Look up payloads that are not final; the group goes back where the chain lost one."""
        there = await self._still_there(self._state.confirmed.values())
        looked: list[LookedUp] = []
        try:
            for each in self._state.confirmed.values():
                if each.block not in there:
                    looked.append((each.envelope, await self._session.find(each.envelope)))
        finally:
            self._state = sync_machine.looked_up(self._state, looked)
        gone = [each for each, found in looked if found.status is not ChainStatus.CONFIRMED]
        if not gone:
            return Event.UNCHANGED if await self._have_applied() else Event.LEFT
        payloads = list(map(Payload.of, gone))
        await asyncio.to_thread(self._groups.take_back, self._group_id, payloads)
        self._state = sync_machine.taken_back(self._state, gone)
        return Event.TAKEN_BACK

    async def _look_up_doubted(self) -> Event:
        confirmed = {
            digest
            for digest, (envelope, status) in self._state.doubted.items()
            if status is ChainStatus.ABSENT
            and (await self._session.find(envelope)).status is ChainStatus.CONFIRMED
        }
        self._state = sync_machine.trusting(self._state, confirmed)
        return Event.CONFIRMED if confirmed else Event.UNCHANGED

    async def _read(self) -> Event:
        if self._state.reads == MOST_READS:
            return Event.READ_OFTEN
        # A node may have left out a payload of the chain, or served a payload that a reorg took
        # back: read payloads that are not final again, from all asked nodes.
        reader = self._begun()
        keys = self._session.keys
        # Payloads under sparse ids may come below those that are final (ADR 50).
        reader.topic.read_again = {
            each: 1 if each in keys.sparse_ids else self._state.final.get(each, 0) + 1
            for each in keys.chain_ids
        }
        reader.topic.doubted = self._state.doubted.keys()
        found = await self._session.read(reader)
        self._second += map(Payload.of, found.second)
        # Keep waiting envelopes, too: another node may hide them in the next round.
        self._keep(found.accepted)
        self._state = sync_machine.read(self._state, found)
        return Event.READ

    async def _settle_conflicts(self) -> Event:
        """Look up payloads served in a held payload's place; RECHECKING looks up the held one."""
        confirmed: list[VerifiedEnvelope] = []
        lacking: list[LookedUp] = []
        try:
            for conflict in self._state.conflicts:
                found = await self._session.find(conflict.served)
                if found.status is ChainStatus.CONFIRMED:
                    confirmed.append(conflict.served)
                else:
                    lacking.append((conflict.served, found))
        finally:
            self._state = sync_machine.doubting(self._state, lacking)
        self._keep(confirmed)
        return Event.REPLACED if confirmed else Event.UNCHANGED

    async def _confirm(self) -> Event:
        """Look up the next payloads, up to a payload that the chain does not have."""
        looked: list[LookedUp] = []
        count = 0
        try:
            while count < len(self._state.pending) and await self._is_confirmed(
                self._state.pending[count].envelope, looked
            ):
                count += 1
        finally:
            self._state = sync_machine.looked_up(self._state, looked)
        self._state = sync_machine.confirmed(self._state, count)
        return Event.LOOKED_UP

    async def _is_confirmed(self, envelope: VerifiedEnvelope, looked: list[LookedUp]) -> bool:
        """Return whether an envelope is a node's or on the chain; add look-ups to ``looked``."""
        known = self._state.confirmed.get(envelope.place)
        is_known = known is not None and known.envelope.digest == envelope.digest
        if envelope.transaction_hash is None or is_known:
            return True
        if await self._was_final(envelope):
            return True
        found = await self._session.find(envelope)
        looked.append((envelope, found))
        return found.status is ChainStatus.CONFIRMED

    async def _was_final(self, envelope: VerifiedEnvelope) -> bool:
        """Return whether the group has applied exactly this envelope, and it is final."""
        if envelope.sequence_id > self._state.final.get(envelope.originator_id, 0):
            return False
        return await asyncio.to_thread(self._groups.have_applied, [Payload.of(envelope)])

    async def _apply(self, done: Round) -> Event:
        """Apply the confirmed payloads to the group.

        A payload of the chain that comes late takes the group back to before that payload; then all
        later payloads are applied again.
        """
        payloads = [_payload(each) for each in self._state.ready if not each.is_copy]
        outcomes = await asyncio.to_thread(self._groups.apply, self._group_id, payloads)
        done.outcomes += outcomes
        self._state = sync_machine.handed_in(self._state, payloads)
        await self._apply_second(done)
        if any(map(self._is_below_final, outcomes)):
            return Event.LEFT
        if self._state.pending:
            return Event.HELD_UP
        return Event.APPLIED if await self._have_applied() else Event.LEFT

    async def _apply_second(self, done: Round) -> None:
        """Apply payloads in whose places a node signed other ones, which were applied."""
        second = self._second[-MOST_SECOND:]
        if not second:
            return
        outcomes = await asyncio.to_thread(self._groups.apply, self._group_id, second)
        waiting = {each.place for each in outcomes if each.status is PayloadStatus.WAITING}
        self._second = [each for each in second if each.place in waiting]
        done.outcomes += outcomes

    def _is_below_final(self, outcome: Outcome) -> bool:
        """Return whether a payload was new and is below final ones, as sparse ids may be.

        The group went back before it, also from payloads that are not compared any more.
        """
        originator_id, sequence_id = outcome.place
        is_sparse = originator_id in self._session.keys.sparse_ids
        is_below = sequence_id < self._state.final.get(originator_id, 0)
        return is_sparse and is_below and not outcome.is_repeated

    async def _have_applied(self) -> bool:
        """Return whether no other process changed what this object has applied to the group."""
        given = list(self._state.handed_in.values())
        return await asyncio.to_thread(self._groups.have_applied, given)

    async def _finalize(self) -> Event:
        if self._state.confirmed:
            final = await asyncio.to_thread(self._session.chain.final)
            if final is not None:
                await self._finalize_up_to(final.number)
        return Event.FINALIZED

    async def _finalize_up_to(self, block: int) -> None:
        passed = sync_machine.passed(self._state, block)
        there = await self._still_there(passed.values())
        # A reorg may have come since the look-up: the next round takes the payloads back.
        is_right = all(each.block in there for each in passed.values())
        if passed and is_right and await self._have_applied():
            highest = max(sequence_id for _, sequence_id in passed)
            await asyncio.to_thread(self._groups.finalize, self._group_id, highest)
            self._state = sync_machine.finalized(self._state, passed)

    async def _still_there(self, payloads: Iterable[ConfirmedPayload]) -> frozenset[BlockReference]:
        """Return which of the payloads' blocks the chain has now."""
        blocks = {each.block for each in payloads}
        if not blocks:
            return frozenset()
        return await asyncio.to_thread(self._session.chain.still_there, blocks)

    def _keep(self, envelopes: list[VerifiedEnvelope]) -> None:
        if envelopes:
            with self._store.writing() as connection:
                keep_envelopes(connection, envelopes)


def _payload(applied: Applied) -> Payload:
    missing = ", ".join(f"{number} of originator {one}" for one, number in applied.without)
    return Payload.of(applied.envelope, f"without {missing}" if missing else "")
