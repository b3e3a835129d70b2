"""Follows the identity updates with the members that they give to inboxes (XIP-46, I1 to I14).

Theory of operation. The follower runs on the indexer's thread, between two steps, so no update is
taken back while it judges. The follower's own cursor moves in the transaction that stores the
outcomes of the updates. A reorg takes members back in the transaction that takes back their updates
(``Store.retract``); the follower only forgets the states that it remembers.

An update is judged by the state after all earlier ones of its inbox. States are not stored: a state
is made again from the updates that counted, whose signatures were verified before.

A contract wallet that nobody answered for leaves its update undecided. The order of an originator
is whole, so all its later updates wait, too, also those of other inboxes: the cursor stands before
the update, and the update is judged again after a pause that grows.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import (
    ChainError,
    ChainkitError,
    MalformedData,
    RefusedUpdate,
    StoreUnavailable,
)
from chainkit.identity.identifiers import MemberIdentifier
from chainkit.identity.refusals import Refusal
from chainkit.identity.state import AssociationState
from chainkit.identity.update import update_in
from chainkit.identity.validation import restore, validate
from chainkit.identity.wallets import NO_WALLETS, Wallets
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.inboxes.waiting import WaitingUpdates
from chainkit_node.storage.inboxes import (
    Identifier,
    JudgedUpdate,
    move_inbox_cursor,
    read_inbox_cursor,
    read_refused,
    record_judged,
)
from chainkit_node.types import Selection

_PAGE: Final = 500
"""Envelopes that are looked at in one transaction."""

_REMEMBERED: Final = 1000
"""Inboxes whose newest state is kept in memory."""

_MOST_SECONDS: Final = 5.0
"""Spent on one step, and one update more: the indexer's thread waits meanwhile."""

WalletsAt = Callable[[int], Wallets]
"""Returns the wallets for an update that was published at a time, in ns since 1970."""


class InboxFollower:
    """An observer of the indexer's loop."""

    def __init__(
        self,
        store: Store,
        log: EnvelopeLog,
        wallets_at: WalletsAt = lambda originator_ns: NO_WALLETS,
        say_waiting: Callable[[int], object] = lambda count: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the node's database, its envelopes, and the contract wallets at a time.

        ``say_waiting`` takes how many originators have an update that waits for an answer, after
        each change; ``clock`` returns seconds.
        """
        self._store = store
        self._log = log
        self._wallets_at = wallets_at
        self._clock = clock
        self._waiting = WaitingUpdates(clock, say_waiting)
        self._states: OrderedDict[bytes, AssociationState | None] = OrderedDict()
        self._reached: dict[int, int] = {}

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Follow the updates up to the indexer's cursor, or to one that has to wait.

        After _MOST_SECONDS the rest is left to the next step.
        """
        if isinstance(result, RolledBack):
            self._states.clear()
            self._waiting.hurry()
        deadline = self._clock() + _MOST_SECONDS
        try:
            for originator_id, last in self._log.chain_cursor().items():
                while self._follow(originator_id, last, deadline):
                    pass
        except StoreUnavailable:
            # The indexer's loop logs the error. A remembered state may not have been stored.
            self._states.clear()

    def failed(self, error: ChainkitError) -> None:
        """Nothing was committed."""

    @property
    def has_waiting(self) -> bool:
        """Whether an update waits for an answer, which is asked for again at later steps."""
        return self._waiting.is_any

    def _follow(self, originator_id: int, last: int, deadline: float) -> bool:
        """Judge the next updates of an originator; return whether there may be more."""
        if self._waiting.is_pausing(originator_id):
            return False
        with self._store.reading() as connection:
            cursor = read_inbox_cursor(connection, originator_id)
            if cursor < self._reached.get(originator_id, 0):
                # An update came below others, which are judged again after it (ADR 50).
                self._states.clear()
            self._reached[originator_id] = cursor
            if cursor >= last:
                # A reorg may have taken back what waited.
                self._waiting.ended(originator_id)
                return False
            selection = Selection(
                originator_ids=frozenset([originator_id]), cursor={originator_id: cursor}
            )
            rows = self._log.rows(connection, selection, _PAGE)
            judged, left, error = self._judged(connection, rows, deadline)
        is_full = len(rows) == _PAGE
        reached = rows[-1].sequence_id if is_full else last
        if left is not None:
            reached = left.sequence_id - 1
        if reached > cursor:
            with self._store.writing() as connection:
                for each in judged:
                    record_judged(connection, each)
                move_inbox_cursor(connection, originator_id, reached)
        self._reached[originator_id] = max(reached, cursor)
        if left is not None and error is not None:
            self._waiting.met(originator_id, left.sequence_id, error)
        else:
            self._waiting.passed(originator_id, reached)
        return is_full and left is None

    def _judged(
        self, connection: Connection, rows: Sequence[StoredEnvelope], deadline: float
    ) -> tuple[Sequence[JudgedUpdate], StoredEnvelope | None, ChainError | None]:
        """Return the outcomes of updates, the first undecided update, and the error that caused it.

        There is no error where the time was over.
        """
        judged: list[JudgedUpdate] = []
        for row in filter(_is_update, rows):
            if judged and self._clock() >= deadline:
                return judged, row, None
            try:
                judged.append(self._judge(connection, row))
            except ChainError as error:
                return judged, row, error
        return judged, None, None

    def _judge(self, connection: Connection, row: StoredEnvelope) -> JudgedUpdate:
        """Judge an update. Raises ChainError where it cannot be decided yet."""
        inbox_id = row.topic[1:]
        state = self._state(connection, row)
        key = (row.originator_id, row.sequence_id, inbox_id)
        # If the update is refused, or has to wait, the state stays.
        self._remember(row.topic, state)
        try:
            wallets = self._wallets_at(row.originator_ns)
            accepted = validate(state, inbox_id, _update(row.envelope), wallets)
        except (RefusedUpdate, MalformedData) as error:
            reason = error.reason if isinstance(error, RefusedUpdate) else Refusal.MALFORMED
            return JudgedUpdate(*key, refusal=str(reason))
        self._remember(row.topic, accepted.state)
        changes = accepted.changes
        associated = _identifiers((*changes.associated, *changes.installed))
        return JudgedUpdate(
            *key, associated, _identifiers((*changes.revoked, *changes.uninstalled))
        )

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
    return update_in(parse_originator_envelope(envelope).client_envelope)
