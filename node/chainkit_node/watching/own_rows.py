"""The node's own envelopes, with which a peer's answers are compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Final

from sqlalchemy import Connection, select

from chainkit.protocol.received_envelope import NO_TOPIC
from chainkit.types import Place
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.blocks import read_block, read_final_block
from chainkit_indexer.storage.envelopes import read_highest
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.replicated import read_after
from chainkit_node.watching.comparing import PAGE, Question

MOST_PICKED: Final = 5
"""Envelopes of one question by topics, each of another originator."""

_RECENT: Final = 1000
"""The last sequence ids of an originator, among which one is picked."""

_LARGEST_ID: Final = 2**63 - 1
"""The largest sequence id that a database column holds."""

_EXPIRY_MARGIN_SECONDS: Final = 3600
"""An envelope that expires sooner may have expired by the peer's clock."""


class WatchedRows:
    """Reads the node's database; for several threads. All methods raise StoreError."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        """Take the database, and the time of day in seconds since 1970."""
        self._store = store
        self._now = now
        self.chain_ids = frozenset(each.originator_id for each in store.identity.contracts)
        self._sparse_ids = store.identity.sparse_originator_ids

    def final_ids(self) -> Mapping[int, int]:
        """Return the highest final sequence id of each of the chain's originators, 0 for none."""
        with self._store.reading() as connection:
            block = read_block(connection, read_final_block(connection))
        ids = {} if block is None else block.sequence_ids
        return {each: ids.get(each, 0) for each in self.chain_ids}

    def final_after(self, originator_id: int, after: int) -> Mapping[Place, bytes]:
        """Return up to PAGE final envelopes of the chain behind a sequence id.

        None of an originator whose ids are sparse: a peer that lags behind has later ones, and not
        yet those that came below them (ADR 50).
        """
        if originator_id in self._sparse_ids:
            return {}
        rows = schema.chain_envelopes.c
        query = (
            select(rows.sequence_id, rows.envelope)
            .where(rows.originator_id == originator_id, rows.sequence_id > after)
            .order_by(rows.sequence_id)
            .limit(PAGE)
        )
        with self._store.reading() as connection:
            is_final = rows.block_number <= read_final_block(connection)
            found = connection.execute(query.where(is_final))
            return {(originator_id, row.sequence_id): row.envelope for row in found}

    def held(self, places: Collection[Place]) -> Mapping[Place, bytes]:
        """Return the envelopes under some places, of the chain only those that are final."""
        by_originator: dict[int, list[int]] = {}
        for originator_id, sequence_id in places:
            if sequence_id <= _LARGEST_ID:
                by_originator.setdefault(originator_id, []).append(sequence_id)
        found: dict[Place, bytes] = {}
        with self._store.reading() as connection:
            for originator_id, ids in by_originator.items():
                found |= self._held(connection, originator_id, ids)
        return found

    def topic_question(self, chance: random.Random) -> Question | None:
        """Ask for topics of recent envelopes of several originators; None where there are none.

        The cursor leaves out what lies before the picked ones, and what else is held.
        """
        with self._store.reading() as connection:
            highest = read_highest(connection)
            originator_ids = sorted(highest)
            some = chance.sample(originator_ids, min(MOST_PICKED, len(originator_ids)))
            found = [self._picked(connection, each, highest[each], chance) for each in some]
        picked = {place: topic for place, topic in found if topic != NO_TOPIC}
        if not picked:
            return None
        cursor = highest | {originator_id: last - 1 for originator_id, last in picked}
        # On an inbox's topic, what breaks a rule is rightly left out.
        wanted = tuple(place for place in picked if place[0] not in self.chain_ids)
        return Question(cursor, topics=frozenset(picked.values()), picked=wanted)

    def _held(
        self, connection: Connection, originator_id: int, ids: Collection[int]
    ) -> Mapping[Place, bytes]:
        is_of_chain = originator_id in self.chain_ids
        rows = schema.chain_envelopes.c if is_of_chain else schema.envelopes.c
        query = select(rows.sequence_id, rows.envelope).where(
            rows.originator_id == originator_id, rows.sequence_id.in_(ids)
        )
        if is_of_chain:
            query = query.where(rows.block_number <= read_final_block(connection))
        found = connection.execute(query)
        return {(originator_id, row.sequence_id): row.envelope for row in found}

    def _picked(
        self, connection: Connection, originator_id: int, last: int, chance: random.Random
    ) -> tuple[Place, bytes]:
        after = chance.randrange(max(last - _RECENT, 0), last)
        row = read_after(connection, originator_id, after)
        if row is None or self._expires_soon(row.expires_at):
            return (originator_id, 1), NO_TOPIC
        return (originator_id, row.sequence_id), row.topic

    def _expires_soon(self, expires_at: int | None) -> bool:
        return expires_at is not None and expires_at <= self._now() + _EXPIRY_MARGIN_SECONDS
