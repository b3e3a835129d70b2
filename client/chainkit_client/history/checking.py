"""Asks nodes and chain for the envelopes of imported groups, and stores each row's standing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from heapq import merge
from tempfile import TemporaryFile
from typing import Any, Final

from sqlalchemy import Connection, select

from chainkit.types import Place
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.transcript import Message, imported_message, stored_message
from chainkit_client.history.coverage import Coverage, Row, compare
from chainkit_client.history.rows import envelope_digest
from chainkit_client.history.served import Served, ServedEnvelope
from chainkit_client.network.chain_status import ChainStatus
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage import imported, schema
from chainkit_client.storage.evidence import OWN_ROWS
from chainkit_client.storage.imported import ImportedGroup
from chainkit_client.storage.imported_schema import Standing, imported_messages
from chainkit_client.storage.sealing import Seal
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import PATIENCE_SECONDS
from chainkit_client.topics.passing import PassingTopic

_PAUSE_SECONDS: Final = 0.25
_PAGE: Final = 500
_ROUND_SECONDS: Final = 600.0
"""How long a node may take for a whole topic, of which each page has its own bound."""


async def check_groups(session: NetworkSession, store: Store) -> list[Coverage]:
    """Compare all imported groups, after ``session.refresh``. Raises the network's errors."""
    with store.reading() as connection:
        groups = imported.read_groups(connection)
    found = []
    for group_id in dict.fromkeys(each.group_id for each in groups):
        said = [each for each in groups if each.group_id == group_id]
        served, is_complete = await _served(session, store, group_id)
        now_ns = session.now_ns()
        found.append(
            await asyncio.to_thread(
                _compare_stored, store, group_id, said, served, is_complete, now_ns
            )
        )
    return found


def _compare_stored(
    store: Store,
    group_id: bytes,
    said: Sequence[ImportedGroup],
    served: Served,
    is_complete: bool,
    now_ns: int,
) -> Coverage:
    """Compare the stored rows, and store their standings."""
    page: dict[bytes, Standing | None] = {}
    with store.reading() as reading, store.writing() as writing:

        def keep(tag: bytes, standing: Standing | None) -> None:
            page[tag] = standing
            if len(page) == _PAGE:
                imported.write_standings(writing, page)
                page.clear()

        rows = _rows(reading, store.seal, group_id)
        coverage = compare(group_id, rows, said, served, is_complete, now_ns, keep)
        imported.write_standings(writing, page)
    return coverage


async def _served(session: NetworkSession, store: Store, group_id: bytes) -> tuple[Served, bool]:
    """Return a topic's envelopes, and whether all nodes have answered all that heads list."""
    claimed = await asyncio.to_thread(_claimed_of_chain, session, store, group_id)
    served, doubted = Served(), list[VerifiedEnvelope]()

    def take(envelope: VerifiedEnvelope) -> None:
        # A node may vouch for a payload that the chain lacks.
        if envelope.transaction_hash is not None and envelope.place in claimed:
            doubted.append(envelope)
        else:
            served.add(_compared(envelope))

    with TemporaryFile() as file:
        topic = PassingTopic(group_topic(group_id), file, take)
        reader = session.reader(topic, len(session.nodes), _ROUND_SECONDS)
        is_complete = await _is_read(session, reader)
    for each in doubted:
        if (await session.find(each)).status is ChainStatus.CONFIRMED:
            served.add(_compared(each))
    return served, is_complete


async def _is_read(session: NetworkSession, reader: TopicReader) -> bool:
    """Read a topic; return whether all nodes have answered all that heads list."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 2 * PATIENCE_SECONDS
    while True:
        await session.read(reader)
        if not reader.topic.lacks_of_heads:
            return not reader.silent
        if loop.time() > deadline:
            return False
        await asyncio.sleep(_PAUSE_SECONDS)


def _compared(envelope: VerifiedEnvelope) -> ServedEnvelope:
    return ServedEnvelope(
        envelope.place,
        envelope.originator_ns,
        envelope_digest(envelope.envelope),
        envelope.is_commit,
        envelope.payload_hash,
    )


def _claimed_of_chain(session: NetworkSession, store: Store, group_id: bytes) -> set[Place]:
    """Return the places of the chain that imported rows name."""
    columns = imported_messages.c
    is_of_chain = columns.originator_id.in_(session.keys.chain_ids)
    query = select(columns.originator_id, columns.sequence_id).where(
        columns.group_id == group_id, is_of_chain
    )
    with store.reading() as connection:
        return {(row[0], row[1]) for row in connection.execute(query)}


def _rows(connection: Connection, seal: Seal, group_id: bytes) -> Iterator[Row]:
    """Yield the rows that this client read itself, and imported ones beside them, by place."""
    return merge(_own(connection, seal, group_id), _others(connection, seal, group_id), key=_order)


def _order(row: Row) -> tuple[int, ...]:
    return row.place or ()


def _own(connection: Connection, seal: Seal, group_id: bytes) -> Iterator[Row]:
    columns = schema.group_messages.c
    query = OWN_ROWS.where(columns.group_id == group_id)
    for row in _by_place(connection, query, columns):
        envelope = row["envelope"]
        digest = None if envelope is None else envelope_digest(envelope)
        yield _row(row["id"], stored_message(row, seal), digest, is_own=True)


def _others(connection: Connection, seal: Seal, group_id: bytes) -> Iterator[Row]:
    columns, own = imported_messages.c, select(schema.group_messages.c.id)
    query = imported.IMPORTED_ROWS.where(columns.group_id == group_id, columns.id.not_in(own))
    for row in _by_place(connection, query, columns):
        yield _row(row["id"], imported_message(row, seal), row["digest"], is_own=False)


def _by_place(connection: Connection, query: Any, columns: Any) -> Iterator[Any]:
    ordered = query.order_by(columns.originator_id, columns.sequence_id)
    yield from connection.execute(ordered.execution_options(yield_per=_PAGE)).mappings()


def _row(tag: bytes, message: Message, digest: bytes | None, is_own: bool) -> Row:
    is_disputed = message.standing is Standing.DISPUTED
    time_ns = message.originator_ns
    return Row(tag, message.kind, message.place, time_ns, digest, is_own, is_disputed)
