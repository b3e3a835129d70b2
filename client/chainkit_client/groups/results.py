"""Results of payloads: the applied payload of each place, and failed payloads that may succeed.

A failed payload is stored until its epoch is final, with the authenticator of the history in which
it failed (R26). Another try is worth it once the epoch has another history.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from chainkit.protocol.mls.message import ContentType, MessageHeader, parse_message_header
from chainkit_client.groups import history
from chainkit_client.groups.payload import Payload
from chainkit_client.groups.session import Session
from chainkit_client.storage import payloads
from chainkit_client.storage.payloads import PayloadResult


def applied_of(connection: Connection, received: Sequence[Payload]) -> list[Payload]:
    """Return the payloads of a topic that were applied in their places, with any result."""
    if not received:
        return []
    places = [each.place for each in received]
    known = payloads.read_results_at(connection, received[0].topic, places)
    return [each for each in received if each.place in known and is_same(known[each.place], each)]


def is_same(known: PayloadResult, payload: Payload) -> bool:
    """Return whether a result is this payload's: a reorg may move a payload to another block."""
    theirs = payload.payload_hash, payload.originator_ns
    return (known.payload_hash, known.originator_ns) == theirs


def is_commit(result: PayloadResult) -> bool:
    """Return whether a kept payload is a commit."""
    assert result.message is not None
    return parse_message_header(result.message).content_type is ContentType.COMMIT


def may_succeed(session: Session, header: MessageHeader) -> bool:
    """Return whether a payload that failed may succeed with another history of the group."""
    if session.current is None or header.epoch > session.epoch:
        return True
    final = history.final_epoch(session.connection, session.group_id, session.final_sequence_id)
    if final is None or header.epoch > final:
        return True
    if not session.is_member and session.epoch > final:
        # A reorg may take the removal of this installation back.
        return True
    return not history.is_confirmed(session.connection, session.group_id)


def tried_with(session: Session, header: MessageHeader) -> bytes | None:
    """Return the current authenticator of a payload's epoch.

    None before that epoch, and while this installation is removed: nothing can be decrypted then.
    """
    if session.current is None or not session.is_member or header.epoch > session.epoch:
        return None
    found = history.read_epochs(session.connection, session.group_id, header.epoch, most=1)
    is_it = bool(found) and found[0].number == header.epoch
    return found[0].authenticator if is_it else None


def is_worth_trying(session: Session, result: PayloadResult) -> bool:
    """Return whether the epoch's history changed since a stored payload failed."""
    assert result.message is not None
    now = tried_with(session, parse_message_header(result.message))
    return now is not None and now != result.tried_with


def kept_payload(session: Session, result: PayloadResult) -> Payload:
    """Return the stored payload of a result."""
    assert result.message is not None and result.aad_hash is not None
    return Payload(
        session.group_id,
        result.originator_id,
        result.sequence_id,
        result.originator_ns,
        result.message,
        result.aad_hash,
        result.warning,
        result.expires_at,
    )
