"""Welcomes: a group begins as pending (R29), and is joined at its commit on the chain.

A welcome can be outdated: a reorg replaced the commit, and the sender invites again. So each
welcome is stored until its commit is read. A later welcome replaces the state of an earlier welcome
until another member's commit is accepted, which proves that the earlier welcome was right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.errors import MalformedData
from chainkit.signatures import keccak256
from chainkit.types import Place, TopicKind
from chainkit_client.groups import history
from chainkit_client.groups.history import Epoch
from chainkit_client.groups.session import Session, Tools
from chainkit_client.groups.welcome import parse_welcome
from chainkit_client.mls.engine import EngineDied, GroupView, MlsRefused, NotInvited
from chainkit_client.storage import payloads, schema
from chainkit_client.storage.own import mark_used, read_key_packages
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import MembershipState, PayloadStatus

_WELCOMES: Final = schema.welcomes
_STATE: Final = "welcomes.state"
_NOT_INVITED: Final = "it is for no key package that is kept"


@dataclass(frozen=True, slots=True)
class WelcomePayload:
    """A verified payload of this installation's topic of welcomes."""

    originator_id: int
    sequence_id: int
    originator_ns: int
    """Nanoseconds since 1970: the group's time of creation, as far as this client knows."""
    data: bytes = field(repr=False)
    """A ``groups.welcome.Welcome``, encoded."""


@dataclass(frozen=True, slots=True)
class KeptWelcome:
    """An opened welcome."""

    hash: bytes
    epoch: int
    authenticator: bytes
    commit_hash: bytes | None
    state: bytes | None = field(repr=False)


def take_welcome(connection: Connection, tools: Tools, payload: WelcomePayload) -> bytes | None:
    """Open a welcome, and join its group if its commit was read; return the group's id.

    None where no key package opens the welcome, where the engine ends at it, or where it was taken
    before: another welcome under the same id is taken, too, for a node may have signed both. Raises
    EngineFailed, and changes nothing, where the engine did not answer.
    """
    digest = keccak256(payload.data)
    topic = TopicKind.WELCOME.topic(tools.installation.public_key)
    place = payload.originator_id, payload.sequence_id
    known = payloads.read_result(connection, topic, *place)
    if known is not None and known.payload_hash == digest:
        return None
    group_id, reason = None, ""
    try:
        with connection.begin_nested():
            group_id = _open(connection, tools, payload)
    except NotInvited:
        reason = _NOT_INVITED
    except (MalformedData, EngineDied) as error:
        reason = str(error)
    status = PayloadStatus.FAILED if reason else PayloadStatus.SUCCEEDED
    result = PayloadResult(topic, *place, payload.originator_ns, digest, status, reason)
    payloads.write_result(connection, result)
    payloads.move_cursor(connection, topic, *place, payload.originator_ns)
    return group_id


def read_unopened(connection: Connection, tools: Tools) -> list[PayloadResult]:
    """Return the welcomes to a key package of this installation that could not be opened."""
    topic = TopicKind.WELCOME.topic(tools.installation.public_key)
    return [
        each
        for each in payloads.read_results(connection, topic)
        if each.status is PayloadStatus.FAILED and each.reason != _NOT_INVITED
    ]


def find_welcome(session: Session, commit_hash: bytes) -> KeptWelcome | None:
    """Return the welcome that names a commit."""
    return _find(session, _WELCOMES.c.commit_hash == commit_hash)


def can_join(session: Session, welcome: KeptWelcome, place: Place | None) -> bool:
    """Return whether to join by a welcome whose commit is at a place."""
    current = session.current
    if welcome.state is None or (current and current.authenticator == welcome.authenticator):
        return False
    if current is None:
        return True
    if place is not None and current.place is not None and place[1] <= current.place[1]:
        return False
    if not session.is_member:
        return True
    first = history.first_epoch(session.connection, session.group_id)
    is_invited = first is not None and _find(
        session, _WELCOMES.c.authenticator == first.authenticator
    )
    return bool(is_invited) and not history.is_confirmed(session.connection, session.group_id)


def join(
    session: Session, welcome: KeptWelcome, commit_hash: bytes | None, place: Place | None
) -> None:
    """Enter a group at the place of a welcome's commit."""
    assert welcome.state is not None
    session.flush()
    history.delete_epochs(session.connection, session.group_id, welcome.epoch)
    epoch = Epoch(welcome.epoch, None, welcome.authenticator, commit_hash, place)
    session.accept(welcome.state, epoch)
    session.end_payloads()


def forget_welcomes(session: Session, final_epoch: int) -> None:
    """Delete the states of welcomes to epochs up to a final epoch."""
    is_of = _WELCOMES.c.group_id == session.group_id
    statement = update(_WELCOMES).where(is_of, _WELCOMES.c.epoch <= final_epoch)
    session.connection.execute(statement.values(state=None))


def _open(connection: Connection, tools: Tools, payload: WelcomePayload) -> bytes:
    try:
        welcome = parse_welcome(payload.data)
    except MalformedData as error:
        raise NotInvited(error.subject, error.expected, error.got, error.place) from None
    state, view = _joined(connection, tools, welcome.mls)
    _insert_group(connection, view.group_id, payload.originator_ns)
    identity = keccak256(payload.data)
    row = {
        "hash": identity,
        "group_id": view.group_id,
        "commit_hash": welcome.commit_hash,
        "epoch": view.epoch,
        "authenticator": view.epoch_authenticator,
        "state": tools.seal.sealed(state, _STATE, identity),
        "originator_ns": payload.originator_ns,
    }
    connection.execute(insert(_WELCOMES).values(row).on_conflict_do_nothing())
    session = Session.load(connection, tools, view.group_id)
    kept = KeptWelcome(identity, view.epoch, view.epoch_authenticator, welcome.commit_hash, state)
    _join_if_read(session, kept)
    session.flush()
    return view.group_id


def _join_if_read(session: Session, welcome: KeptWelcome) -> None:
    if welcome.commit_hash is None:
        if can_join(session, welcome, None):
            join(session, welcome, None, None)
        return
    chain_ids = sorted(session.tools.chain_ids)
    connection, topic = session.connection, session.topic
    found = payloads.find_payload(connection, topic, welcome.commit_hash, chain_ids)
    if found is None:
        return
    place = found.originator_id, found.sequence_id
    if can_join(session, welcome, place):
        join(session, welcome, welcome.commit_hash, place)
        payloads.succeed(connection, topic, *place)


def _joined(connection: Connection, tools: Tools, welcome: bytes) -> tuple[bytes, GroupView]:
    refusal: MlsRefused = NotInvited("welcome", "one to a key package that is kept", "another")
    for key_package in read_key_packages(connection, tools.seal):
        try:
            state = tools.engine.join(tools.installation, key_package, welcome)
        except NotInvited:
            continue
        except MlsRefused as error:
            refusal = error
            continue
        mark_used(connection, key_package.public)
        return state, tools.engine.view(state)
    raise refusal


def _insert_group(connection: Connection, group_id: bytes, time_ns: int) -> None:
    row = {
        "id": group_id,
        "created_at_ns": time_ns,
        "membership_state": MembershipState.PENDING.value,
        "is_published": True,
        "is_member": True,
    }
    connection.execute(insert(schema.groups).values(row).on_conflict_do_nothing())


def _find(session: Session, condition: ColumnElement[bool]) -> KeptWelcome | None:
    is_of = _WELCOMES.c.group_id == session.group_id
    query = select(_WELCOMES).where(is_of, condition).order_by(_WELCOMES.c.originator_ns.desc())
    row: Any = session.connection.execute(query.limit(1)).mappings().one_or_none()
    if row is None:
        return None
    sealed, opened = row["state"], session.tools.seal.opened
    return KeptWelcome(
        row["hash"],
        row["epoch"],
        row["authenticator"],
        row["commit_hash"],
        None if sealed is None else opened(sealed, _STATE, row["hash"]),
    )
