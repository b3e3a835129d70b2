"""Messages of a group's topic: stores the text, and compares the sender's history (R4)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final

from chainkit.errors import MalformedData
from chainkit.protocol.mls.message import ContentType, MessageHeader
from chainkit_client.groups import history
from chainkit_client.groups.control import take_control
from chainkit_client.groups.history import Epoch
from chainkit_client.groups.opening import Refused, Waiting, decrypted, read_header, take_own
from chainkit_client.groups.page import Page
from chainkit_client.groups.payload import Fork, Outcome, Payload
from chainkit_client.groups.plaintext import Plaintext, message_id, parse_plaintext
from chainkit_client.groups.session import Session
from chainkit_client.groups.transcript import (
    Message,
    account_of,
    insert_message,
    insert_note,
    read_message,
)
from chainkit_client.intents import rows
from chainkit_client.intents.machine import Event, is_too_old, sources
from chainkit_client.intents.rows import Attempt
from chainkit_client.mls.engine import PAST_EPOCHS, ApplicationReceived, KeyUsed, Member
from chainkit_client.storage import payloads
from chainkit_client.storage.schema import DeliveryStatus, MessageKind, PayloadStatus

BY_A_COPY: Final = "written by another copy of this database"
"""The warning of a message of this installation that the database lacked."""


def receive_message(
    session: Session, payload: Payload, header: MessageHeader, page: Page
) -> Outcome:
    """Read a message that is next. Raises Refused, Waiting, MalformedData, EngineFailed."""
    if session.current is None or (not session.is_member and header.epoch >= session.epoch):
        raise Waiting("not in the group")
    if header.epoch > session.epoch:
        raise Waiting(f"a message of epoch {header.epoch} in epoch {session.epoch}")
    attempt = page.own.get(payload.payload_hash)
    if attempt is not None:
        return _receive_own(session, payload, attempt)
    if header.epoch < session.epoch - PAST_EPOCHS:
        raise Refused(f"the keys of epoch {header.epoch} are gone in epoch {session.epoch}")
    try:
        received = decrypted(session, payload, header)
    except KeyUsed as error:
        _store_unreadable(session, payload, header, error.leaf)
        raise
    if not isinstance(received, ApplicationReceived):
        raise Refused("its header claims a message")
    # The message's key is used up, even if the plaintext is malformed.
    session.use(received.state)
    _look_ahead(session, payload, page)
    if received.sender.public_key == session.tools.itself.public_key:
        payload = replace(payload, warning=f"{payload.warning}; {BY_A_COPY}".removeprefix("; "))
        if received.epoch == session.epoch:
            session.renew_keys()
    plaintext = parse_plaintext(received.plaintext)
    return _store_message(session, payload, received, plaintext)


def _store_unreadable(session: Session, payload: Payload, header: MessageHeader, leaf: int) -> None:
    """Store that a member used a key twice; a stranger's copy of a message leaves no row."""
    session.flush()
    if payloads.was_read(session.connection, session.topic, header.sender_data):
        return
    sender = Member(leaf, b"", b"")
    if header.epoch == session.epoch:
        members = session.tools.engine.view(session.state).members
        sender = next((each for each in members if each.leaf == leaf), sender)
    insert_note(
        session.connection,
        session.tools.seal,
        MessageKind.UNREADABLE,
        payload,
        header.epoch,
        sender,
        "its key was used before: its sender's database may be a copy",
    )


def _look_ahead(session: Session, payload: Payload, page: Page) -> None:
    """Let the engine decrypt the next message while this one is stored."""
    following = page.other_after(payload)
    if following is None:
        return
    with suppress(Refused, MalformedData):
        if read_header(session, following).content_type is ContentType.APPLICATION:
            session.tools.engine.begin_receive(session.state, following.message)


def _receive_own(session: Session, payload: Payload, attempt: Attempt) -> Outcome:
    """Record that an own message is on the network."""
    intent = rows.read_intent(session.connection, session.tools.seal, attempt.intent_id)
    assert intent is not None
    epochs = history.read_epochs(session.connection, session.group_id, up_to=attempt.epoch, most=1)
    is_same = bool(epochs) and epochs[0].authenticator == attempt.authenticator
    if not is_same or is_too_old(attempt.epoch, session.epoch, PAST_EPOCHS):
        if intent.payload_hash == attempt.payload_hash and intent.state in sources(
            Event.EPOCH_OVER
        ):
            session.give_back(intent, Event.EPOCH_OVER)
        raise Refused("an own message that others cannot read")
    take_own(session, attempt, payload)
    return Outcome(payload.place, PayloadStatus.SUCCEEDED, message_id=intent.message_id)


def _store_message(
    session: Session, payload: Payload, received: ApplicationReceived, plaintext: Plaintext
) -> Outcome:
    sender = received.sender
    if take_control(session, sender, plaintext.content):
        fork = _find_fork(session, plaintext, sender)
        return Outcome(payload.place, PayloadStatus.SUCCEEDED, fork=fork)
    if sender.is_backup:
        raise Refused("words of a backup, which only reads")
    identity = message_id(plaintext.content, session.group_id, plaintext.sent_at_ns)
    message = Message(
        id=identity,
        group_id=session.group_id,
        kind=MessageKind.APPLICATION,
        content=plaintext.content,
        sent_at_ns=plaintext.sent_at_ns,
        sender=sender.public_key,
        sender_account=account_of(sender.credential),
        delivery=DeliveryStatus.PUBLISHED,
        epoch=received.epoch,
        place=payload.place,
        warning=payload.warning,
        originator_ns=payload.originator_ns,
        expires_at=payload.expires_at,
    )
    if not insert_message(session.connection, session.tools.seal, message):
        earlier = read_message(session.connection, session.tools.seal, identity)
        if earlier is None or earlier.sender != sender.public_key:
            raise Refused("the words and the time of another member's message")
    fork = _find_fork(session, plaintext, sender)
    return Outcome(payload.place, PayloadStatus.SUCCEEDED, message_id=identity, fork=fork)


def _find_fork(session: Session, plaintext: Plaintext, sender: Member) -> Fork | None:
    """Compare the sender's history with the own one (R4); store the first epoch that differs."""
    ours = {each.number: each for each in session.recent()}
    differing: list[tuple[Epoch, bytes]] = []
    for back, theirs in enumerate(plaintext.history):
        epoch = ours.get(plaintext.epoch - back)
        if epoch is not None and epoch.authenticator != theirs:
            differing.append((epoch, theirs))
    if not differing:
        return None
    epoch, theirs = differing[-1]
    session.mark_fork(epoch.number)
    return Fork(epoch.number, epoch.place, epoch.authenticator, theirs, sender.public_key)
