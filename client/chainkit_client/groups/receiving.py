"""A payload of a group's topic, applied in a session: what follows is one transaction (R25).

Payloads come in the causal order, those of the chain in the chain's (R6). The first commit that is
valid in the current epoch ends it (R8); one of another epoch is refused by its header (R5). A
payload that fails may succeed yet: its epoch is ahead, or a reorg gives its epoch another history.
So it is kept until its epoch is final, and tried again when the history changes (R26).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from chainkit.errors import MalformedData
from chainkit.protocol.mls.message import ContentType, MessageHeader, parse_message_header
from chainkit.signatures import keccak256
from chainkit_client.groups import history
from chainkit_client.groups.history import Epoch
from chainkit_client.groups.joining import can_join, find_welcome, join
from chainkit_client.groups.page import Page
from chainkit_client.groups.payload import Fork, Outcome, Payload
from chainkit_client.groups.plaintext import Plaintext, message_id, parse_plaintext
from chainkit_client.groups.results import (
    may_succeed,
    tried_with,
)
from chainkit_client.groups.session import Session
from chainkit_client.groups.transcript import (
    Message,
    account_of,
    change_delivery,
    insert_message,
    read_message,
)
from chainkit_client.intents import rows
from chainkit_client.intents.machine import Event, is_too_old, sources
from chainkit_client.intents.rows import Attempt
from chainkit_client.mls.engine import (
    PAST_EPOCHS,
    ApplicationReceived,
    CommitReceived,
    Member,
    MlsRefused,
    Received,
)
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import (
    DeliveryStatus,
    MessageKind,
    PayloadStatus,
    WelcomeState,
)


class _Refused(Exception):
    """The payload fails in the group as it is."""


class _Waiting(Exception):
    """The payload is of an epoch that is not reached."""


def receive(session: Session, payload: Payload, page: Page) -> tuple[Outcome, PayloadResult]:
    """Receive a payload that is next, and record what became of it.

    Raises EngineFailed where the engine did not answer: nothing is recorded then.
    """
    header: MessageHeader | None = None
    status, reason = PayloadStatus.SUCCEEDED, ""
    outcome = Outcome(payload.place, status)
    try:
        header = _header(session, payload)
        outcome = _receive(session, payload, header, page)
    except _Waiting as error:
        status, reason = PayloadStatus.WAITING, str(error)
    except (_Refused, MalformedData) as error:
        status, reason = PayloadStatus.FAILED, str(error)
    result = PayloadResult(
        session.topic,
        payload.originator_id,
        payload.sequence_id,
        payload.originator_ns,
        payload.payload_hash,
        status,
        reason,
        epoch=None if header is None else min(header.epoch, 2**63 - 1),
    )
    if (
        status is not PayloadStatus.SUCCEEDED
        and header is not None
        and may_succeed(session, header)
    ):
        result = replace(
            result,
            tried_with=tried_with(session, header),
            message=payload.message,
            aad_hash=payload.aad_hash,
            warning=payload.warning,
        )
    session.record_result(result)
    return replace(outcome, status=status, reason=reason), result


def _header(session: Session, payload: Payload) -> MessageHeader:
    """Read the header before any cryptography (R3), and check what it authenticates (C8)."""
    header = parse_message_header(payload.message)
    if header.group_id != session.group_id:
        raise _Refused("the message is of another group")
    if header.authenticated_data and header.authenticated_data != payload.aad_hash:
        raise _Refused("its author authenticated another target, topic or cursor")
    return header


def _receive(session: Session, payload: Payload, header: MessageHeader, page: Page) -> Outcome:
    if header.content_type is ContentType.COMMIT:
        return _receive_commit(session, payload, header, page)
    if header.content_type is ContentType.APPLICATION:
        return _receive_message(session, payload, header, page)
    raise _Refused("a proposal on its own is discarded")


def _receive_commit(
    session: Session, payload: Payload, header: MessageHeader, page: Page
) -> Outcome:
    if not _is_chain(session, payload):
        raise _Refused("a commit belongs to the chain")
    welcome = find_welcome(session, payload.payload_hash)
    if welcome is not None and can_join(session, welcome, payload.place):
        join(session, welcome, payload.payload_hash, payload.place)
        return Outcome(payload.place, PayloadStatus.SUCCEEDED, epoch=session.epoch)
    if not session.is_active:
        raise _Waiting("not in the group")
    if header.epoch != session.epoch:
        raise _Refused(f"a commit of epoch {header.epoch} in epoch {session.epoch}")
    attempt = page.own.get(payload.payload_hash)
    if attempt is not None:
        adopt(session, attempt, payload.originator_ns, payload)
    else:
        _follow(session, payload, header)
    return Outcome(payload.place, PayloadStatus.SUCCEEDED, epoch=session.epoch)


def _follow(session: Session, payload: Payload, header: MessageHeader) -> None:
    """Accept another member's commit."""
    received = _engine_received(session, payload, header)
    if not isinstance(received, CommitReceived):
        raise _Refused("its header claims a commit")
    view = received.view
    authenticator = view.epoch_authenticator
    if not view.is_member:
        # This installation was removed, and cannot know the next epoch's: a hash stands for it.
        authenticator = keccak256(session.authenticator + payload.payload_hash)
    session.commit(
        received.state,
        authenticator,
        view.is_member,
        payload.payload_hash,
        payload.place,
    )
    session.record_members(received.added, received.removed, received.sender, payload.originator_ns)


def adopt(session: Session, attempt: Attempt, time_ns: int, payload: Payload | None = None) -> None:
    """Accept an own commit: take the state that was kept for it.

    Without a payload it is one that is not published (§3.3.7).
    """
    if attempt.authenticator != session.authenticator or attempt.staged_commit is None:
        raise _Refused("an own commit of another history of the group")
    engine = session.tools.engine
    before, after = engine.view(session.state), engine.view(attempt.staged_commit)
    place = None if payload is None else payload.place
    payload_hash = None if payload is None else payload.payload_hash
    session.commit(
        attempt.staged_commit,
        after.epoch_authenticator,
        after.is_member,
        payload_hash,
        place,
        attempt.intent_id,
    )
    was = {each.public_key: each for each in before.members}
    now = {each.public_key: each for each in after.members}
    session.record_members(
        [each for key, each in now.items() if key not in was],
        [each for key, each in was.items() if key not in now],
        session.tools.itself,
        time_ns,
    )
    _read_own(session, attempt, payload)
    rows.change_welcomes(session.connection, attempt.payload_hash, WelcomeState.READY_TO_SEND)


def _receive_message(
    session: Session, payload: Payload, header: MessageHeader, page: Page
) -> Outcome:
    if session.current is None or (not session.is_member and header.epoch >= session.epoch):
        raise _Waiting("not in the group")
    if header.epoch > session.epoch:
        raise _Waiting(f"a message of epoch {header.epoch} in epoch {session.epoch}")
    attempt = page.own.get(payload.payload_hash)
    if attempt is not None:
        return _receive_own(session, payload, attempt)
    if header.epoch < session.epoch - PAST_EPOCHS:
        raise _Refused(f"the keys of epoch {header.epoch} are gone in epoch {session.epoch}")
    received = _engine_received(session, payload, header)
    if not isinstance(received, ApplicationReceived):
        raise _Refused("its header claims a message")
    # Its key is used up, even if it says nothing that can be read.
    session.use(received.state)
    _look_ahead(session, payload, page)
    plaintext = parse_plaintext(received.plaintext)
    return _store_message(session, payload, received, plaintext)


def _look_ahead(session: Session, payload: Payload, page: Page) -> None:
    """Let the engine decrypt the next message while this one is stored."""
    following = page.other_after(payload)
    if following is None:
        return
    with suppress(_Refused, MalformedData):
        if _header(session, following).content_type is ContentType.APPLICATION:
            session.tools.engine.begin_receive(session.state, following.message)


def _receive_own(session: Session, payload: Payload, attempt: Attempt) -> Outcome:
    """Take note that an own message is on the network."""
    intent = rows.read_intent(session.connection, session.tools.seal, attempt.intent_id)
    assert intent is not None
    standing = history.read_epochs(
        session.connection, session.group_id, up_to=attempt.epoch, most=1
    )
    is_same = bool(standing) and standing[0].authenticator == attempt.authenticator
    if not is_same or is_too_old(attempt.epoch, session.epoch, PAST_EPOCHS):
        if intent.payload_hash == attempt.payload_hash and intent.state in sources(
            Event.EPOCH_OVER
        ):
            session.give_back(intent, Event.EPOCH_OVER)
        raise _Refused("an own message that others cannot read")
    _read_own(session, attempt, payload)
    return Outcome(payload.place, PayloadStatus.SUCCEEDED, message_id=intent.message_id)


def _read_own(session: Session, attempt: Attempt, payload: Payload | None) -> None:
    """Commit the intent of an own payload, unless another one of its payloads did."""
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
            intent.message_id,
            DeliveryStatus.PUBLISHED,
            attempt.epoch,
            payload.place,
            payload.warning,
        )


def _engine_received(session: Session, payload: Payload, header: MessageHeader) -> Received:
    try:
        received = session.tools.engine.receive(session.state, payload.message)
    except MlsRefused as error:
        raise _Refused(str(error)) from error
    if received.authenticated_data != header.authenticated_data:
        raise _Refused("its header authenticates other data than its content")
    return received


def _store_message(
    session: Session, payload: Payload, received: ApplicationReceived, plaintext: Plaintext
) -> Outcome:
    sender = received.sender
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
    )
    if not insert_message(session.connection, session.tools.seal, message):
        earlier = read_message(session.connection, session.tools.seal, identity)
        if earlier is None or earlier.sender != sender.public_key:
            raise _Refused("the words and the time of another member's message")
    fork = _find_fork(session, plaintext, sender)
    return Outcome(payload.place, PayloadStatus.SUCCEEDED, message_id=identity, fork=fork)


def _find_fork(session: Session, plaintext: Plaintext, sender: Member) -> Fork | None:
    """Compare the sender's history with this one (R4), and keep the first epoch that differs."""
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


def _is_chain(session: Session, payload: Payload) -> bool:
    return payload.originator_id in session.tools.chain_ids
