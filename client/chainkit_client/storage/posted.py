"""The updates of inboxes that the chain gave, and up to which block."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from chainkit.documents.fields import parse_json
from chainkit.types import BlockReference, Place
from chainkit_client.storage import schema
from chainkit_client.storage.sealing import Seal

_TABLE: Final = schema.posted_updates
_TAG: Final = "posted_updates.tag"
_FOUND: Final = "posted_updates.found"

MOST_INBOXES: Final = 1_000
"""Inboxes that are stored; beyond them, those go that were stored longest ago."""
MOST_BYTES: Final = 1 << 20
"""Payloads of one inbox that are stored. Anybody can post to an inbox: more is searched again."""


@dataclass(frozen=True, slots=True)
class Posted:
    """An inbox's updates on one contract, up to a block."""

    through: BlockReference
    updates: Mapping[Place, bytes]
    """ClientEnvelopes, by originator and sequence id."""


def read_posted(connection: Connection, seal: Seal, name: bytes) -> Posted | None:
    """Return what is stored under a name, None where nothing is."""
    tag = seal.tag(name, _TAG)
    found = connection.scalar(select(_TABLE.c.found).where(_TABLE.c.tag == tag))
    if found is None:
        return None
    content = parse_json(seal.opened(found, _FOUND, tag), _FOUND)
    through = BlockReference(content["number"], bytes.fromhex(content["hash"]))
    updates = {(one, number): bytes.fromhex(data) for one, number, data in content["updates"]}
    return Posted(through, updates)


def write_posted(
    connection: Connection, seal: Seal, name: bytes, posted: Posted, now_ns: int
) -> None:
    """Store what was found in the place of what was stored, unless it is too large.

    ``now_ns`` is in nanoseconds since 1970.
    """
    tag = seal.tag(name, _TAG)
    if sum(map(len, posted.updates.values())) > MOST_BYTES:
        connection.execute(delete(_TABLE).where(_TABLE.c.tag == tag))
        return
    content = {
        "number": posted.through.number,
        "hash": posted.through.hash.hex(),
        "updates": [[*place, data.hex()] for place, data in posted.updates.items()],
    }
    row = {"found": seal.sealed(json.dumps(content).encode(), _FOUND, tag), "stored_ns": now_ns}
    statement = insert(_TABLE).values(tag=tag, **row)
    connection.execute(statement.on_conflict_do_update([_TABLE.c.tag], set_=row))
    newest = select(_TABLE.c.tag).order_by(_TABLE.c.stored_ns.desc(), _TABLE.c.tag)
    connection.execute(delete(_TABLE).where(_TABLE.c.tag.not_in(newest.limit(MOST_INBOXES))))
