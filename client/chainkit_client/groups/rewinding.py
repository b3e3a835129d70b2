"""Reorgs and finality: the history goes back to before the first commit that changed.

The newest state before that commit is restored, so that used keys are not used again. Intents whose
payloads were read back on the lost branch are built again; payloads that come back on the new
branch count as before. States before a final block are deleted (ADR 37).
"""

from __future__ import annotations

from collections.abc import Iterable

from chainkit.errors import ReorgTooDeep
from chainkit_client.groups import history
from chainkit_client.groups.joining import forget_welcomes
from chainkit_client.groups.payload import Payload
from chainkit_client.groups.results import applied_of
from chainkit_client.groups.session import Session
from chainkit_client.groups.transcript import retract_changes
from chainkit_client.intents import rows
from chainkit_client.intents.machine import Event, sources
from chainkit_client.intents.rows import Intent
from chainkit_client.storage import payloads
from chainkit_client.storage.schema import IntentState


def retract(session: Session, originator_id: int, after: int) -> bool:
    """Take back the chain's payloads behind an id; return whether the group's epoch went back.

    The topic's cursor goes back to ``after``, from where the new branch is applied. Raises
    ReorgTooDeep, and changes nothing, where a final payload would be taken back. Payloads under
    sparse ids may be final and still have an earlier place later: only a state that was deleted
    keeps the group from going back (ADR 50).
    """
    may_go_back = originator_id in session.tools.sparse_ids and _keeps_state(session, after)
    if after < session.final_sequence_id and not may_go_back:
        subject = f"reorg of group 0x{session.group_id.hex()}"
        expected = f"no change up to the final payload {session.final_sequence_id}"
        raise ReorgTooDeep(subject, expected, f"one behind {after}")
    session.flush()
    connection = session.connection
    first = history.first_epoch_after(connection, session.group_id, after)
    payloads.retract_results(connection, session.topic, originator_id, after)
    if first is None:
        return False
    session.go_back(first)
    retract_changes(connection, session.group_id, first)
    rows.retract_welcomes(connection, session.group_id, first - 1)
    for intent in rows.read_intents(
        connection, session.tools.seal, session.group_id, sources(Event.RETRACTED)
    ):
        if _rests_on(intent, first):
            session.give_back(intent, Event.RETRACTED)
    return True


def _keeps_state(session: Session, after: int) -> bool:
    """Return whether the state before the first epoch made behind an id is stored, if any was."""
    connection, group_id = session.connection, session.group_id
    first = history.first_epoch_after(connection, group_id, after)
    if first is None:
        return True
    before = history.read_epochs(connection, group_id, up_to=first - 1, most=1)
    return any(
        history.read_state(connection, session.tools.seal, group_id, each.authenticator) is not None
        for each in before
    )


def take_back(session: Session, gone: Iterable[Payload]) -> bool:
    """Take back payloads that the chain has lost, from the first applied one on, as ``retract``.

    Another process may have taken the payloads back before, and have applied other payloads.
    """
    applied = applied_of(session.connection, list(gone))
    if not applied:
        return False
    originator_id, sequence_id = min(each.place for each in applied)
    return retract(session, originator_id, sequence_id - 1)


def finalize(session: Session, sequence_id: int) -> bool:
    """Record payloads of the chain as final up to an id; return whether states were deleted."""
    if sequence_id <= session.final_sequence_id:
        return False
    session.flush()
    session.finalize(sequence_id)
    connection, group_id = session.connection, session.group_id
    final = history.final_epoch(connection, group_id, sequence_id)
    if final is None or session.current is None:
        return False
    current = [each.authenticator for each in history.read_epochs(connection, group_id)]
    is_deleted = history.forget_states(connection, group_id, final, current)
    rows.forget_final(connection, group_id, final)
    if not session.is_member and session.epoch <= final:
        _end_intents(session)
    elif session.is_member and history.is_confirmed(connection, group_id):
        forget_welcomes(session, final)
        payloads.let_go(connection, session.topic, final + 1)
    return is_deleted


def _rests_on(intent: Intent, first_epoch: int) -> bool:
    """Return whether an intent's state depends on an epoch from ``first_epoch`` on."""
    epoch = intent.published_in_epoch
    if epoch is None:
        return False
    # A commit that was read back made the epoch after its own.
    makes_epoch = (
        intent.is_commit
        and intent.payload_hash is not None
        and intent.state is not IntentState.PUBLISHED
    )
    return epoch + makes_epoch >= first_epoch


def _end_intents(session: Session) -> None:
    """Give up waiting intents: this installation was removed for good."""
    connection, seal, group_id = session.connection, session.tools.seal, session.group_id
    for intent in rows.read_intents(connection, seal, group_id, (IntentState.PUBLISHED,)):
        session.give_back(intent, Event.EPOCH_OVER)
    for intent in rows.read_intents(connection, seal, group_id, (IntentState.TO_SEND,)):
        session.give_up(intent, "this installation was removed from the group")
