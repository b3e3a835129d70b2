"""Commits of a group's topic: a commit ends the epoch in which it is valid (R5, R8).

The engine applies another member's commit, an own commit has its stored state, and a commit that
adds this installation is joined by its welcome.
"""

from __future__ import annotations

from chainkit.protocol.mls.message import MessageHeader
from chainkit.signatures import keccak256
from chainkit_client.groups.joining import can_join, find_welcome, join
from chainkit_client.groups.opening import Refused, Waiting, decrypted, take_own
from chainkit_client.groups.page import Page
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.groups.session import Session
from chainkit_client.groups.transcript import insert_note
from chainkit_client.intents import rows
from chainkit_client.intents.rows import Attempt
from chainkit_client.mls.engine import CommitReceived, OwnCommit
from chainkit_client.storage.schema import MessageKind, PayloadStatus, WelcomeState


def receive_commit(
    session: Session, payload: Payload, header: MessageHeader, page: Page
) -> Outcome:
    """Accept the next commit. Raises Refused, Waiting, MalformedData, EngineFailed."""
    if payload.originator_id not in session.tools.chain_ids:
        raise Refused("a commit belongs to the chain")
    welcome = find_welcome(session, payload.payload_hash)
    if welcome is not None and can_join(session, welcome, payload.place):
        join(session, welcome, payload.payload_hash, payload.place)
        return Outcome(payload.place, PayloadStatus.SUCCEEDED, epoch=session.epoch)
    if not session.is_active:
        raise Waiting("not in the group")
    if header.epoch != session.epoch:
        raise Refused(f"a commit of epoch {header.epoch} in epoch {session.epoch}")
    attempt = page.own.get(payload.payload_hash)
    if attempt is not None:
        adopt(session, attempt, payload.originator_ns, payload)
    else:
        _follow(session, payload, header)
    return Outcome(payload.place, PayloadStatus.SUCCEEDED, epoch=session.epoch)


def _follow(session: Session, payload: Payload, header: MessageHeader) -> None:
    """Accept another member's commit."""
    try:
        received = decrypted(session, payload, header)
    except OwnCommit:
        _stay_behind(session, payload)
        return
    if not isinstance(received, CommitReceived):
        raise Refused("its header claims a commit")
    view = received.view
    authenticator = view.epoch_authenticator
    if not view.is_member:
        # A removed installation cannot know the next authenticator: use a hash instead.
        authenticator = keccak256(session.authenticator + payload.payload_hash)
    session.commit(
        received.state,
        authenticator,
        view.is_member,
        payload.payload_hash,
        payload.place,
    )
    session.record_members(received.added, received.removed, received.sender, payload.originator_ns)


def _stay_behind(session: Session, payload: Payload) -> None:
    """Leave the group where another copy of this database made the commit, and has its secrets."""
    authenticator = keccak256(session.authenticator + payload.payload_hash)
    session.commit(session.state, authenticator, False, payload.payload_hash, payload.place)
    session.mark_copied()
    insert_note(
        session.connection,
        session.tools.seal,
        MessageKind.LEFT_BEHIND,
        payload,
        session.epoch,
        session.tools.itself,
        "another copy of this database goes on: ask a member to remove and to add you",
    )


def adopt(session: Session, attempt: Attempt, time_ns: int, payload: Payload | None = None) -> None:
    """Accept an own commit: take the commit's stored state.

    Without a payload, the commit is not published (§3.3.7).
    """
    if attempt.authenticator != session.authenticator or attempt.staged_commit is None:
        raise Refused("an own commit of another history of the group")
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
    take_own(session, attempt, payload)
    rows.change_welcomes(session.connection, attempt.payload_hash, WelcomeState.READY_TO_SEND)
