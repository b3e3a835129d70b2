"""Opens payloads of a group's topic, commits and messages: header, content, and an own intent."""

from __future__ import annotations

from chainkit.protocol.mls.message import MessageHeader, parse_message_header
from chainkit_client.groups.payload import Payload
from chainkit_client.groups.session import Session
from chainkit_client.groups.transcript import change_delivery
from chainkit_client.intents import rows
from chainkit_client.intents.machine import Event, sources
from chainkit_client.intents.rows import Attempt
from chainkit_client.mls.engine import KeyUsed, MlsRefused, OwnCommit, Received
from chainkit_client.storage.schema import DeliveryStatus


class Refused(Exception):
    """The payload fails in the group's current history."""


class Waiting(Exception):
    """The payload's epoch is not reached yet."""


def read_header(session: Session, payload: Payload) -> MessageHeader:
    """Read the header before any cryptography (R3), and check its authenticated data (C8).

    Raises Refused, and MalformedData.
    """
    header = parse_message_header(payload.message)
    if header.group_id != session.group_id:
        raise Refused("the message is of another group")
    if header.authenticated_data and header.authenticated_data != payload.aad_hash:
        raise Refused("its author authenticated another target, topic or cursor")
    return header


def decrypted(session: Session, payload: Payload, header: MessageHeader) -> Received:
    """Let the engine decrypt a payload. Raises Refused, KeyUsed, OwnCommit and EngineFailed."""
    try:
        received = session.tools.engine.receive(session.state, payload.message)
    except (KeyUsed, OwnCommit):
        raise
    except MlsRefused as error:
        raise Refused(str(error)) from error
    if received.authenticated_data != header.authenticated_data:
        raise Refused("its header authenticates other data than its content")
    return received


def take_own(session: Session, attempt: Attempt, payload: Payload | None) -> None:
    """Commit the intent of an own payload, unless another payload of the intent did."""
    intent = rows.read_intent(session.connection, session.tools.seal, attempt.intent_id)
    assert intent is not None
    if intent.state not in sources(Event.OWN_READ):
        return
    originator_id, sequence_id = (None, None) if payload is None else payload.place
    rows.move(
        session.connection,
        intent.id,
        Event.OWN_READ,
        payload_hash=attempt.payload_hash,
        publish_data=b"",
        published_in_epoch=attempt.epoch,
        originator_id=originator_id,
        sequence_id=sequence_id,
        reason="",
    )
    if intent.message_id is not None and payload is not None:
        change_delivery(
            session.connection,
            session.tools.seal,
            intent.message_id,
            DeliveryStatus.PUBLISHED,
            attempt.epoch,
            payload.place,
            payload.warning,
            payload.originator_ns,
            payload.expires_at,
        )
