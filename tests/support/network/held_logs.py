"""A node's database with the chain's envelopes and a peer's log, sound or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, and_, select, update

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import parse_originator_envelope, sign_originator_envelope
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.storage.range_digests import store_ranges
from support.chains import fake_chain
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.reporting import ACCUSED, KEYS, Host, register

PEER = Originator(ACCUSED, KEYS[ACCUSED])
COUNT = 150
"""The peer's highest id: two complete leaves of digests, and the beginning of a third."""


class Ignored:
    """Takes evidence, and does nothing."""

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None: ...


def take(host: Host, data: Sequence[bytes]) -> None:
    """Store envelopes of the peer, as they come from the peer itself."""
    intake = Intake(
        host.store,
        Ignored(),
        lambda: BEGIN_NS + 600 * SECOND_NS,
        lambda new, late: None,
        lambda _: None,
        UngivenIds(lambda: None, lambda: True),
    )
    intake.take(data, Source(PEER.node_id, PEER.key.public_key, is_direct=True))
    intake.close()


def hold_logs(path: Path | str) -> Host:
    """Return a sound database: the chain's envelopes, and a peer's with a gap and digests."""
    host = Host(path)
    register(host)
    host.chain.mine([fake_chain.update("a"), fake_chain.update("b")], [])
    host.indexer.catch_up()
    log = PEER.log(COUNT)
    take(host, [*log[:70], *log[75:]])
    with host.store.writing() as connection:
        assert store_ranges(connection, ACCUSED, 10) == 2
    return host


def place(originator_id: int, sequence_id: int) -> ColumnElement[bool]:
    """The condition of one row of ``envelopes``."""
    return and_(envelopes.c.originator_id == originator_id, envelopes.c.sequence_id == sequence_id)


def change(host: Host, originator_id: int, sequence_id: int, **values: object) -> None:
    """Damage a row."""
    with host.store.writing() as connection:
        row = update(envelopes).where(place(originator_id, sequence_id))
        connection.execute(row.values(**values))


def signed_by_another(host: Host, sequence_id: int) -> bytes:
    """The chain's envelope as another node signs it."""
    with host.store.reading() as connection:
        data: Any = connection.scalar(select(envelopes.c.envelope).where(place(0, sequence_id)))
    held = parse_originator_envelope(data)
    unsigned = held.unsigned_originator_envelope
    return sign_originator_envelope(unsigned, held.transaction_hash, KEYS[ACCUSED])
