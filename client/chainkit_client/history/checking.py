"""Asks nodes and chain for the envelopes of imported groups, and stores each row's standing."""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy import Connection

from chainkit.types import Place
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.transcript import Message, imported_message, stored_message
from chainkit_client.history.coverage import Coverage, Row, ServedEnvelope, compare
from chainkit_client.history.rows import envelope_digest
from chainkit_client.network.chain_status import ChainStatus
from chainkit_client.network.session import NetworkSession
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage import imported, schema
from chainkit_client.storage.evidence import OWN_ROWS
from chainkit_client.storage.imported_schema import Standing, imported_messages
from chainkit_client.storage.sealing import Seal
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import PATIENCE_SECONDS, Topic

_PAUSE_SECONDS: Final = 0.25


async def check_groups(session: NetworkSession, store: Store) -> list[Coverage]:
    """Compare all imported groups, after ``session.refresh``. Raises the network's errors."""
    with store.reading() as connection:
        groups = imported.read_groups(connection)
    found = []
    for group_id in dict.fromkeys(each.group_id for each in groups):
        with store.reading() as connection:
            rows = _rows(connection, store.seal, group_id)
        claimed = {each.place for each in rows if each.place is not None and not each.is_own}
        served, is_complete = await _served(session, group_topic(group_id), claimed)
        said = [each for each in groups if each.group_id == group_id]
        coverage = compare(group_id, rows, said, served, is_complete, session.now_ns())
        with store.writing() as connection:
            imported.write_standings(connection, coverage.standings)
        found.append(coverage)
    return found


async def _served(
    session: NetworkSession, topic: bytes, claimed: set[Place]
) -> tuple[list[ServedEnvelope], bool]:
    """Return a topic's envelopes, and whether all nodes have answered all that heads list."""
    reader = session.reader(Topic(topic), at_once=len(session.nodes))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 2 * PATIENCE_SECONDS
    served: list[ServedEnvelope] = []
    while True:
        found = await session.read(reader)
        for each in (*found.accepted, *found.second):
            if await _is_there(session, each, claimed):
                served.append(_compared(each))
        if not reader.topic.lacks_of_heads:
            return served, not reader.silent
        if loop.time() > deadline:
            return served, False
        await asyncio.sleep(_PAUSE_SECONDS)


def _compared(envelope: VerifiedEnvelope) -> ServedEnvelope:
    return ServedEnvelope(
        envelope.place,
        envelope.originator_ns,
        envelope_digest(envelope.envelope),
        envelope.is_commit,
        envelope.payload_hash,
    )


async def _is_there(
    session: NetworkSession, envelope: VerifiedEnvelope, claimed: set[Place]
) -> bool:
    """Return whether an envelope counts: a node may vouch for a payload that the chain lacks."""
    if envelope.transaction_hash is None or envelope.place not in claimed:
        return True
    return (await session.find(envelope)).status is ChainStatus.CONFIRMED


def _rows(connection: Connection, seal: Seal, group_id: bytes) -> list[Row]:
    """Return the rows that this client read itself, and the imported ones beside them."""
    found: dict[bytes, Row] = {}
    own = OWN_ROWS.where(schema.group_messages.c.group_id == group_id)
    for row in connection.execute(own).mappings():
        envelope = row["envelope"]
        digest = None if envelope is None else envelope_digest(envelope)
        message = stored_message(row, seal)
        found[row["id"]] = _row(row["id"], message, digest, is_own=True)
    other = imported.IMPORTED_ROWS.where(imported_messages.c.group_id == group_id)
    for row in connection.execute(other).mappings():
        message = imported_message(row, seal)
        found.setdefault(row["id"], _row(row["id"], message, row["digest"], is_own=False))
    return list(found.values())


def _row(tag: bytes, message: Message, digest: bytes | None, is_own: bool) -> Row:
    is_disputed = message.standing is Standing.DISPUTED
    time_ns = message.originator_ns
    return Row(tag, message.kind, message.place, time_ns, digest, is_own, is_disputed)
