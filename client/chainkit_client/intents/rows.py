"""Intents in the database: each UPDATE names the states that its event may happen in.

Every function runs in the caller's transaction, which moves the group with the intent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select, update

from chainkit_client.intents.arguments import Arguments, decode_arguments, encode_arguments
from chainkit_client.intents.machine import Event, IllegalTransition, next_state, sources
from chainkit_client.storage import schema
from chainkit_client.storage.schema import IntentKind, IntentState, WelcomeState
from chainkit_client.storage.sealing import Seal

_INTENTS: Final = schema.group_intents
_ATTEMPTS: Final = schema.attempts
# Built once: SQLAlchemy takes as long to build a statement as to run the statement.
_INTENT: Final = select(_INTENTS).where(_INTENTS.c.id == bindparam("intent"))
_INTENTS_OF: Final = (
    select(_INTENTS)
    .where(_INTENTS.c.group_id == bindparam("group"))
    .where(_INTENTS.c.state.in_(bindparam("states", expanding=True)))
    .order_by(_INTENTS.c.id)
)
_ATTEMPT: Final = select(_ATTEMPTS).where(_ATTEMPTS.c.payload_hash == bindparam("hash"))
_ATTEMPTS_OF: Final = select(_ATTEMPTS).where(
    _ATTEMPTS.c.payload_hash.in_(bindparam("hashes", expanding=True))
)
_DATA: Final = "group_intents.data"
_MESSAGE: Final = "group_intents.message_id"
_STAGED: Final = "attempts.staged_commit"
_WELCOMES: Final = "attempts.post_commit_data"
_BUILT: Final[dict[str, Any]] = {
    "publish_data": b"",
    "payload_hash": None,
    "published_in_epoch": None,
    "sent_at_ns": None,
    "originator_id": None,
    "sequence_id": None,
}
"""The concrete form is cleared, and the arguments stay."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A row of ``group_intents``."""

    id: int
    group_id: bytes
    state: IntentState
    arguments: Arguments = field(repr=False)
    published_in_epoch: int | None
    """The epoch for which the intent was built, or in which it had nothing to do."""
    payload_hash: bytes | None
    client_envelope: bytes
    """The payload's bytes to send; empty while there is no payload."""
    sent_at_ns: int | None
    """Nanoseconds since 1970 of the last sending; None where the network lacks the payload."""
    refusals: int
    publish_attempts: int
    message_id: bytes | None
    reason: str

    @property
    def kind(self) -> IntentKind:
        """The kind of the intent's arguments."""
        return self.arguments.kind

    @property
    def is_commit(self) -> bool:
        """Whether the intent's payload is a commit."""
        return self.kind is not IntentKind.SEND_MESSAGE


@dataclass(frozen=True, slots=True)
class Attempt:
    """A payload that was built; the network may deliver the payload at any time."""

    payload_hash: bytes
    intent_id: int
    epoch: int
    """The epoch for which the payload was built."""
    authenticator: bytes
    """The authenticator of ``epoch``."""
    built_at_ns: int
    """Nanoseconds since 1970: not after the first sending of the payload or of its welcomes."""
    staged_commit: bytes | None = field(repr=False)
    """The state after the commit; None for a message, and once the epoch is final."""
    welcomes: bytes | None = field(repr=False)
    """The welcomes that follow the commit; None where there are none."""
    welcome_state: WelcomeState | None


@dataclass(frozen=True, slots=True)
class Built:
    """A payload that is about to be sent."""

    payload_hash: bytes
    client_envelope: bytes
    epoch: int
    authenticator: bytes
    built_at_ns: int
    """Nanoseconds since 1970."""
    staged_commit: bytes | None = field(default=None, repr=False)
    welcomes: bytes | None = field(default=None, repr=False)


def queue(
    connection: Connection,
    seal: Seal,
    group_id: bytes,
    arguments: Arguments,
    message_id: bytes | None = None,
) -> int:
    """Store a new intent, TO_SEND, and return its id."""
    row = {
        "is_commit": arguments.kind is not IntentKind.SEND_MESSAGE,
        "group_id": group_id,
        "data": b"",
        "publish_data": b"",
        "state": IntentState.TO_SEND.value,
    }
    key = connection.execute(insert(_INTENTS).values(row)).inserted_primary_key
    assert key is not None
    intent_id: int = key[0]
    # The seal binds the values to the intent's id.
    values = {"data": seal.sealed(encode_arguments(arguments), _DATA, _row(intent_id))}
    if message_id is not None:
        values["message_id"] = seal.sealed(message_id, _MESSAGE, _row(intent_id))
    connection.execute(update(_INTENTS).where(_INTENTS.c.id == intent_id).values(values))
    return intent_id


def read_intent(connection: Connection, seal: Seal, intent_id: int) -> Intent | None:
    """Return an intent, None where there is none of this id."""
    row = connection.execute(_INTENT, {"intent": intent_id}).mappings().one_or_none()
    return None if row is None else _intent(row, seal)


def existing_intent(connection: Connection, seal: Seal, intent_id: int) -> Intent:
    """Return an intent. Raises IllegalTransition where there is none of this id."""
    found = read_intent(connection, seal, intent_id)
    if found is None:
        raise IllegalTransition(f"intent {intent_id}", "one that was queued", "none")
    return found


def read_intents(
    connection: Connection,
    seal: Seal,
    group_id: bytes,
    states: Iterable[IntentState] = tuple(IntentState),
) -> list[Intent]:
    """Return the intents of a group that are in one of some states, in the order of their ids."""
    values = {"group": group_id, "states": [each.value for each in states]}
    return [_intent(row, seal) for row in connection.execute(_INTENTS_OF, values).mappings()]


def move(connection: Connection, intent_id: int, event: Event, **values: Any) -> IntentState:
    """Let an event happen to an intent, write ``values`` with it, and return the new state.

    Raises IllegalTransition, and changes nothing, where the intent is in a state in which this
    event cannot happen, or where there is no such intent.
    """
    targets = {next_state(state, event): state for state in sources(event)}
    assert len(targets) == 1, "one event leads to one state"
    [target] = targets
    legal = [each.value for each in sources(event)]
    statement = (
        update(_INTENTS)
        .where(_INTENTS.c.id == intent_id, _INTENTS.c.state.in_(legal))
        .values(state=target.value, **values)
    )
    if connection.execute(statement).rowcount != 1:
        found = connection.scalar(select(_INTENTS.c.state).where(_INTENTS.c.id == intent_id))
        if found is None:
            raise IllegalTransition(f"intent {intent_id}", "one that was queued", "none")
        # The call raises: the row is in no state of the event.
        next_state(IntentState(found), event)
    return target


def publish(connection: Connection, seal: Seal, intent: Intent, built: Built) -> None:
    """TO_SEND to PUBLISHED: store a payload before it is sent."""

    def sealed(value: bytes | None, column: str) -> bytes | None:
        return None if value is None else seal.sealed(value, column, built.payload_hash)

    has_welcomes = built.welcomes is not None
    connection.execute(
        insert(_ATTEMPTS).values(
            payload_hash=built.payload_hash,
            intent_id=intent.id,
            group_id=intent.group_id,
            epoch=built.epoch,
            authenticator=built.authenticator,
            built_at_ns=built.built_at_ns,
            staged_commit=sealed(built.staged_commit, _STAGED),
            post_commit_data=sealed(built.welcomes, _WELCOMES),
            welcome_state=WelcomeState.PENDING.value if has_welcomes else None,
        )
    )
    move(
        connection,
        intent.id,
        Event.BUILT,
        publish_data=built.client_envelope,
        payload_hash=built.payload_hash,
        published_in_epoch=built.epoch,
        publish_attempts=intent.publish_attempts + 1,
        # After a process that ends here, nobody knows whether the payload was sent.
        sent_at_ns=built.built_at_ns,
    )


def give_back(connection: Connection, intent_id: int, event: Event, **values: Any) -> None:
    """Move an intent to TO_SEND: the concrete payload is cleared, and the arguments stay (R14)."""
    move(connection, intent_id, event, **(_BUILT | values))


def read_attempt(connection: Connection, seal: Seal, payload_hash: bytes) -> Attempt | None:
    """Return an own payload by its hash, None where this installation never built it."""
    row = connection.execute(_ATTEMPT, {"hash": payload_hash}).mappings().one_or_none()
    return None if row is None else _attempt(row, seal)


def read_attempts(
    connection: Connection, seal: Seal, payload_hashes: Sequence[bytes]
) -> dict[bytes, Attempt]:
    """Return the payloads of some hashes that this installation built, by hash."""
    rows = connection.execute(_ATTEMPTS_OF, {"hashes": payload_hashes}).mappings()
    return {row["payload_hash"]: _attempt(row, seal) for row in rows}


def read_ready_welcomes(connection: Connection, seal: Seal, group_id: bytes) -> list[Attempt]:
    """Return the commits whose welcomes may be sent and were not sent."""
    is_ready = _ATTEMPTS.c.welcome_state == WelcomeState.READY_TO_SEND.value
    return _attempts(connection, seal, _ATTEMPTS.c.group_id == group_id, is_ready)


def change_welcomes(connection: Connection, payload_hash: bytes, state: WelcomeState) -> None:
    """Write the state of a commit's welcomes, if the commit has any."""
    has_welcomes = _ATTEMPTS.c.welcome_state.is_not(None)
    is_it = _ATTEMPTS.c.payload_hash == payload_hash
    connection.execute(
        update(_ATTEMPTS).where(is_it, has_welcomes).values(welcome_state=state.value)
    )


def send_welcomes(connection: Connection, payload_hash: bytes) -> None:
    """READY_TO_SEND to SENT; any other state stays, as after a reorg in between."""
    is_ready = _ATTEMPTS.c.welcome_state == WelcomeState.READY_TO_SEND.value
    statement = update(_ATTEMPTS).where(_ATTEMPTS.c.payload_hash == payload_hash, is_ready)
    connection.execute(statement.values(welcome_state=WelcomeState.SENT.value))


def count_refusals(connection: Connection, intent_id: int, refusals: int) -> None:
    """Write how often an intent was refused."""
    statement = update(_INTENTS).where(_INTENTS.c.id == intent_id)
    connection.execute(statement.values(refusals=refusals))


def retract_welcomes(connection: Connection, group_id: bytes, first_epoch: int) -> None:
    """Let welcomes wait again for commits that were built from ``first_epoch`` on."""
    connection.execute(
        update(_ATTEMPTS)
        .where(_ATTEMPTS.c.group_id == group_id, _ATTEMPTS.c.epoch >= first_epoch)
        .where(_ATTEMPTS.c.welcome_state.is_not(None))
        .values(welcome_state=WelcomeState.PENDING.value)
    )


def forget_final(connection: Connection, group_id: bytes, final_epoch: int) -> None:
    """Drop the secrets of payloads that were built before a final epoch; their hashes stay."""
    is_final = _ATTEMPTS.c.group_id == group_id, _ATTEMPTS.c.epoch < final_epoch
    connection.execute(update(_ATTEMPTS).where(*is_final).values(staged_commit=None))
    is_ready = _ATTEMPTS.c.welcome_state == WelcomeState.READY_TO_SEND.value
    connection.execute(
        update(_ATTEMPTS)
        .where(*is_final, _ATTEMPTS.c.welcome_state.is_not(None), ~is_ready)
        .values(post_commit_data=None)
    )


def _intent(row: Any, seal: Seal) -> Intent:
    identity, message_id = _row(row["id"]), row["message_id"]
    data = seal.opened(row["data"], _DATA, identity)
    return Intent(
        id=row["id"],
        group_id=row["group_id"],
        state=IntentState(row["state"]),
        arguments=decode_arguments(data),
        published_in_epoch=row["published_in_epoch"],
        payload_hash=row["payload_hash"],
        client_envelope=row["publish_data"],
        sent_at_ns=row["sent_at_ns"],
        refusals=row["refusals"],
        publish_attempts=row["publish_attempts"],
        message_id=None if message_id is None else seal.opened(message_id, _MESSAGE, identity),
        reason=row["reason"],
    )


def _attempts(
    connection: Connection, seal: Seal, *conditions: ColumnElement[bool]
) -> list[Attempt]:
    query = select(_ATTEMPTS).where(*conditions).order_by(_ATTEMPTS.c.epoch)
    return [_attempt(row, seal) for row in connection.execute(query).mappings()]


def _attempt(row: Any, seal: Seal) -> Attempt:
    def opened(value: bytes | None, column: str) -> bytes | None:
        return None if value is None else seal.opened(value, column, row["payload_hash"])

    state = row["welcome_state"]
    return Attempt(
        payload_hash=row["payload_hash"],
        intent_id=row["intent_id"],
        epoch=row["epoch"],
        authenticator=row["authenticator"],
        built_at_ns=row["built_at_ns"],
        staged_commit=opened(row["staged_commit"], _STAGED),
        welcomes=opened(row["post_commit_data"], _WELCOMES),
        welcome_state=None if state is None else WelcomeState(state),
    )


def _row(intent_id: int) -> bytes:
    return intent_id.to_bytes(8, "big")
