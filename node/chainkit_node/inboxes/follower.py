"""Follows the identity updates with the members that they give to inboxes (XIP-46, I1 to I14).

Theory of operation. The follower runs on the indexer's thread, between two steps, so no update is
taken back while it judges. Its own cursor moves in the transaction that stores what became of the
updates. A reorg takes members back in the transaction that takes back their updates
(``Store.retract``); the follower only forgets the states that it remembers.

An update is judged by the state after all earlier ones of its inbox. States are not stored: one is
made again from the updates that counted, whose signatures were verified before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import ChainkitError, MalformedData, RefusedUpdate, StoreUnavailable
from chainkit.identity.identifiers import MemberIdentifier
from chainkit.identity.judge import judge, restore
from chainkit.identity.refusals import Refusal
from chainkit.identity.state import AssociationState
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.strict import check_strict
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.inboxes import (
    Identifier,
    JudgedUpdate,
    move_inbox_cursor,
    read_inbox_cursor,
    read_refused,
    record_judged,
)
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.types import Selection

_PAGE: Final = 500
"""Envelopes that are looked at in one transaction."""

_REMEMBERED: Final = 1000
"""Inboxes whose newest state is kept in memory."""


class InboxFollower:
    """An observer of the indexer's loop."""

    def __init__(self, store: Store, log: EnvelopeLog) -> None:
        """Take the node's database, and its envelopes."""
        self._store = store
        self._log = log
        self._states: OrderedDict[bytes, AssociationState | None] = OrderedDict()

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Follow the updates up to the indexer's cursor."""
        if isinstance(result, RolledBack):
            self._states.clear()
        try:
            for originator_id, last in self._log.chain_cursor().items():
                while self._follow(originator_id, last):
                    pass
        except StoreUnavailable:
            # The loop meets it, too, and says so. A remembered state may not have been stored.
            self._states.clear()

    def failed(self, error: ChainkitError) -> None:
        """Nothing was committed."""

    def _follow(self, originator_id: int, last: int) -> bool:
        """Judge the next updates of an originator; return whether there may be more."""
        with self._store.reading() as connection:
            cursor = read_inbox_cursor(connection, originator_id)
            if cursor >= last:
                return False
            selection = Selection(
                originator_ids=frozenset([originator_id]), cursor={originator_id: cursor}
            )
            rows = self._log.rows(connection, selection, _PAGE)
            judged = [self._judged(connection, row) for row in rows if _is_update(row)]
        is_full = len(rows) == _PAGE
        with self._store.writing() as connection:
            for each in judged:
                record_judged(connection, each)
            move_inbox_cursor(connection, originator_id, rows[-1].sequence_id if is_full else last)
        return is_full

    def _judged(self, connection: Connection, row: StoredEnvelope) -> JudgedUpdate:
        inbox_id = row.topic[1:]
        state = self._state(connection, row)
        key = (row.originator_id, row.sequence_id, inbox_id)
        try:
            accepted = judge(state, inbox_id, _update(row.envelope))
        except (RefusedUpdate, MalformedData) as error:
            self._remember(row.topic, state)
            reason = error.reason if isinstance(error, RefusedUpdate) else Refusal.MALFORMED
            return JudgedUpdate(*key, refusal=str(reason))
        self._remember(row.topic, accepted.state)
        changes = accepted.changes
        return JudgedUpdate(*key, _identifiers(changes.associated), _identifiers(changes.revoked))

    def _state(self, connection: Connection, row: StoredEnvelope) -> AssociationState | None:
        """Return the state of an inbox before an update."""
        if row.topic in self._states:
            return self._states.pop(row.topic)
        refused = read_refused(connection, [row.topic[1:]])
        before = self._earlier(connection, row)
        counted = (each for each in before if (each.originator_id, each.sequence_id) not in refused)
        return restore(_update(each.envelope) for each in counted)

    def _earlier(self, connection: Connection, row: StoredEnvelope) -> Iterator[StoredEnvelope]:
        """Yield the updates of an inbox before one of them."""
        topics = frozenset([row.topic])
        cursor: dict[int, int] = {}
        while page := self._log.rows(connection, Selection(topics, cursor=cursor), _PAGE):
            for each in page:
                if (each.originator_id, each.sequence_id) == (row.originator_id, row.sequence_id):
                    return
                cursor[each.originator_id] = each.sequence_id
                yield each

    def _remember(self, topic: bytes, state: AssociationState | None) -> None:
        self._states[topic] = state
        if len(self._states) > _REMEMBERED:
            self._states.popitem(last=False)


def _is_update(row: StoredEnvelope) -> bool:
    return TopicKind.IDENTITY_UPDATE.matches(row.topic)


def _identifiers(members: Iterable[MemberIdentifier]) -> tuple[Identifier, ...]:
    return tuple((str(member.kind), member.value) for member in members)


def _update(envelope: bytes) -> bytes:
    """Return the IdentityUpdate of an envelope.

    Raises MalformedData for bytes that other libraries read in another way: a parsed message that
    is written again would hide that.
    """
    client = parse_originator_envelope(envelope).client_envelope
    check_strict(client, envelopes_pb2.ClientEnvelope)
    update = envelopes_pb2.ClientEnvelope.FromString(client).identity_update
    return update.SerializeToString()
