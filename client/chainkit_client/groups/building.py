"""Builds an intent's payload for the current epoch, and stores the payload first (R20, R22).

A payload's authenticated data is the hash of the AuthenticatedData around the payload (C8). Nothing
is published before the first commit that adds others (§3.3.7): before, nobody can read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from chainkit.protocol import wire
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256
from chainkit_client.groups.commits import adopt
from chainkit_client.groups.plaintext import MOST_HISTORY, Plaintext
from chainkit_client.groups.session import Session
from chainkit_client.groups.transcript import change_delivery
from chainkit_client.groups.welcome import Welcome
from chainkit_client.intents import rows
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers, SendMessage
from chainkit_client.intents.machine import Event, is_given_up
from chainkit_client.intents.rows import Built, Intent
from chainkit_client.mls.engine import Member, MlsRefused, Staged
from chainkit_client.storage.schema import DeliveryStatus, IntentState

_AAD_TAG: Final = 1 << 3 | 2
"""Field 1 of a ClientEnvelope, with a length."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A payload that is stored and may be sent."""

    intent_id: int
    group_id: bytes
    payload_hash: bytes
    """keccak256 of the MLSMessage, for the search of the topic."""
    client_envelope: bytes
    """A ClientEnvelope: the bytes to publish, the same each time."""
    is_commit: bool
    """A commit goes to the chain, a message to an originator."""
    sent_at_ns: int | None
    """Nanoseconds since 1970 of the last sending; None where the network lacks the payload."""
    built_at_ns: int
    """Nanoseconds since 1970: not after the first sending."""

    def is_out(self, intent: Intent) -> bool:
        """Return whether an intent still waits for this payload."""
        is_same = intent.payload_hash == self.payload_hash
        return intent.state is IntentState.PUBLISHED and is_same


@dataclass(frozen=True, slots=True)
class _Nothing:
    """The intent has nothing to do, or nothing more."""


@dataclass(frozen=True, slots=True)
class _Commit:
    staged: Staged
    added: tuple[bytes, ...] = field(default=())
    """Installations that need the welcome."""


_Made: TypeAlias = _Nothing | _Commit


def needed_key_packages(session: Session, intent: Intent) -> tuple[bytes, ...]:
    """Return the installations whose key packages are needed to build an intent now."""
    if not isinstance(intent.arguments, AddMembers) or not session.is_active:
        return ()
    members = {each.public_key for each in session.tools.engine.view(session.state).members}
    wanted = dict.fromkeys(intent.arguments.installations)
    return tuple(each for each in wanted if each not in members)


def build(
    session: Session,
    intent: Intent,
    authenticated_data: bytes,
    key_packages: Mapping[bytes, bytes],
    now_ns: int,
) -> Outgoing | None:
    """Build a waiting intent; return the payload to send, None where there is none now.

    ``authenticated_data`` is an AuthenticatedData, ``key_packages`` are public ones by
    installation, ``now_ns`` is the client's clock in nanoseconds since 1970. Raises EngineFailed,
    and changes nothing, where the engine did not answer.
    """
    if intent.state is not IntentState.TO_SEND or not session.is_active:
        return None
    if isinstance(intent.arguments, SendMessage):
        return _build_message(session, intent, intent.arguments, authenticated_data, now_ns)
    if _has_commit_out(session):
        return None
    digest = keccak256(authenticated_data) if session.is_published else b""
    try:
        made = _make(session, intent, digest, key_packages)
    except MlsRefused as error:
        if isinstance(intent.arguments, AddMembers):
            refuse_build(session, intent, str(error))
        else:
            session.give_up(intent, str(error))
        return None
    if isinstance(made, _Nothing):
        rows.move(
            session.connection,
            intent.id,
            Event.NOTHING_TO_DO,
            published_in_epoch=session.epoch,
        )
        return None
    if session.is_published:
        return _store(session, intent, made.staged.message, authenticated_data, now_ns, made)
    _commit_unpublished(session, intent, made, now_ns)
    return None


def refuse_build(session: Session, intent: Intent, reason: str) -> None:
    """Count a failed build of an intent; the last failure gives up the intent."""
    refusals = intent.refusals + 1
    rows.move(session.connection, intent.id, Event.UNBUILT, refusals=refusals)
    if is_given_up(refusals):
        session.give_up(intent, reason)


def names_other_commits(
    outgoing: Outgoing, authenticated_data: bytes, chain_ids: frozenset[int]
) -> bool:
    """Return whether a payload and an AuthenticatedData differ in the chain's ids."""
    sent = envelopes_pb2.ClientEnvelope.FromString(outgoing.client_envelope).aad.last_seen
    now = envelopes_pb2.AuthenticatedData.FromString(authenticated_data).last_seen
    both = sent.node_id_to_sequence_id, now.node_id_to_sequence_id
    return any(both[0].get(each, 0) != both[1].get(each, 0) for each in chain_ids)


def client_envelope(authenticated_data: bytes, message: bytes) -> bytes:
    """Return a ClientEnvelope with a group message around the bytes that were hashed."""
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.group_message.v1.data = message
    return wire.bytes_field(_AAD_TAG, authenticated_data) + envelope.SerializeToString()


def _build_message(
    session: Session,
    intent: Intent,
    arguments: SendMessage,
    authenticated_data: bytes,
    now_ns: int,
) -> Outgoing | None:
    if not session.is_published:
        # Nobody else is in the group: the message needs no network.
        rows.move(
            session.connection,
            intent.id,
            Event.NOTHING_TO_DO,
            published_in_epoch=session.epoch,
        )
        if intent.message_id is not None:
            change_delivery(
                session.connection,
                session.tools.seal,
                intent.message_id,
                DeliveryStatus.PUBLISHED,
                session.epoch,
            )
        return None
    if session.waits_for_keys:
        return None
    authenticators = tuple(each.authenticator for each in session.recent()[:MOST_HISTORY])
    plaintext = Plaintext(arguments.sent_at_ns, session.epoch, authenticators, arguments.content)
    encrypted = session.tools.engine.encrypt(
        session.state, plaintext.encoded(), keccak256(authenticated_data)
    )
    session.use(encrypted.state)
    return _store(session, intent, encrypted.message, authenticated_data, now_ns)


def _make(
    session: Session, intent: Intent, digest: bytes, key_packages: Mapping[bytes, bytes]
) -> _Made:
    engine, state = session.tools.engine, session.state
    match intent.arguments:
        case AddMembers():
            wanted = needed_key_packages(session, intent)
            if not wanted:
                return _Nothing()
            offers = [_offer(session, each, key_packages) for each in wanted]
            return _Commit(engine.add(state, offers, digest), wanted)
        case RemoveMembers():
            gone = _leaves(engine.view(state).members, intent.arguments.installations)
            return _Commit(engine.remove(state, gone, digest)) if gone else _Nothing()
        case KeyUpdate():
            return _Commit(engine.update(state, digest))
        case SendMessage():
            raise AssertionError("a message is no commit")


def _offer(session: Session, installation: bytes, key_packages: Mapping[bytes, bytes]) -> bytes:
    """Return an installation's key package. Raises MlsRefused for another installation's."""
    offer = key_packages.get(installation)
    subject = f"key package of installation 0x{installation.hex()}"
    if offer is None:
        raise MlsRefused(subject, "a valid one that names its own inbox", "none")
    found = session.tools.engine.describe_key_package(offer).public_key
    if found != installation:
        raise MlsRefused(subject, "one of its own", f"one of 0x{found.hex()}")
    return offer


def _leaves(members: Iterable[Member], installations: tuple[bytes, ...]) -> list[int]:
    return [each.leaf for each in members if each.public_key in installations]


def _commit_unpublished(session: Session, intent: Intent, made: _Commit, now_ns: int) -> None:
    """Accept a commit at once: this installation is alone, and nobody else can commit."""
    outgoing = _store(session, intent, made.staged.message, b"", now_ns, made)
    attempt = rows.read_attempt(session.connection, session.tools.seal, outgoing.payload_hash)
    assert attempt is not None
    adopt(session, attempt, now_ns)
    if made.added:
        session.publish_group()


def _store(
    session: Session,
    intent: Intent,
    message: bytes,
    authenticated_data: bytes,
    now_ns: int,
    commit: _Commit | None = None,
) -> Outgoing:
    payload_hash = keccak256(message)
    envelope = client_envelope(authenticated_data, message) if session.is_published else b""
    welcomes = None
    if commit is not None and commit.staged.welcome is not None:
        commit_hash = payload_hash if session.is_published else None
        welcome = Welcome(commit_hash, commit.staged.welcome).encoded()
        welcomes = encode_welcomes(welcome, commit.added)
    built = Built(
        payload_hash,
        envelope,
        session.epoch,
        session.authenticator,
        now_ns,
        None if commit is None else commit.staged.state,
        welcomes,
    )
    rows.publish(session.connection, session.tools.seal, intent, built)
    is_commit = commit is not None
    return Outgoing(intent.id, session.group_id, payload_hash, envelope, is_commit, now_ns, now_ns)


def encode_welcomes(welcome: bytes, installations: tuple[bytes, ...]) -> bytes:
    """Write a welcome and the installations that need it, as the database keeps them."""
    return len(installations).to_bytes(4, "big") + b"".join(installations) + welcome


def decode_welcomes(data: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """Read what ``encode_welcomes`` wrote."""
    end = 4 + 32 * int.from_bytes(data[:4], "big")
    return data[end:], tuple(data[start : start + 32] for start in range(4, end, 32))


def _has_commit_out(session: Session) -> bool:
    out = rows.read_intents(
        session.connection, session.tools.seal, session.group_id, (IntentState.PUBLISHED,)
    )
    return any(each.is_commit for each in out)
