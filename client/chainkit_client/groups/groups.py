"""All groups of an installation: each method is one transaction, all or nothing.

Several threads and processes may use one database: a payload that two processes apply is applied
once, and an intent that two processes build is built once. Methods raise StoreUnavailable where the
database is busy for long, and EngineFailed where the engine did not answer: then nothing was
changed, and the same call may succeed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from chainkit.types import TopicKind
from chainkit_client.groups import applying, joining, rewinding
from chainkit_client.groups.building import (
    Outgoing,
    build,
    decode_welcomes,
    names_other_commits,
    needed_key_packages,
)
from chainkit_client.groups.history import Epoch
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.overview import Group, read_group, read_groups
from chainkit_client.groups.payload import Outcome, Payload, group_topic
from chainkit_client.groups.plaintext import message_id
from chainkit_client.groups.results import applied_of
from chainkit_client.groups.session import NotAMember, Session, Tools
from chainkit_client.groups.transcript import (
    Message,
    account_of,
    insert_message,
    is_taken,
    read_messages,
)
from chainkit_client.intents import rows
from chainkit_client.intents.arguments import Arguments, SendMessage
from chainkit_client.intents.machine import Event, is_given_up
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import EngineFailed, GroupView, MlsEngine
from chainkit_client.storage import payloads, schema
from chainkit_client.storage.own import read_installation
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import (
    DeliveryStatus,
    IntentState,
    MembershipState,
    MessageKind,
)
from chainkit_client.storage.store import Store


@dataclass(frozen=True, slots=True)
class OutgoingWelcome:
    """A welcome whose commit was accepted."""

    payload_hash: bytes
    """The commit's payload hash."""
    installation: bytes
    """32 bytes: the welcome goes to this installation's topic of welcomes."""
    data: bytes
    """A ``groups.welcome.Welcome``, encoded; secret: a reader would learn the group's members."""
    built_at_ns: int
    """Nanoseconds since 1970: when the commit was built, before the welcome's first sending."""


class Groups:
    """The groups of the installation whose database it is."""

    def __init__(self, store: Store, engine: MlsEngine, *chain: frozenset[int]) -> None:
        """Use a database that has an installation; ``chain`` has originators as in ``Tools``."""
        self._store = store
        with store.reading() as connection:
            installation = read_installation(connection, store.seal)
        self._tools = Tools(store.seal, engine, installation, *chain)

    # The user's wishes.

    def create(self, group_id: bytes, now_ns: int) -> None:
        """Make a group with a random id of 16 bytes; ``now_ns`` in nanoseconds since 1970."""
        engine, installation = self._tools.engine, self._tools.installation
        state = engine.create(installation, group_id)
        view = engine.view(state)
        with self._store.writing() as connection:
            row = {
                "id": group_id,
                "created_at_ns": now_ns,
                "membership_state": MembershipState.ALLOWED.value,
                "is_published": False,
                "is_member": True,
            }
            connection.execute(insert(schema.groups).values(row))
            session = Session.load(connection, self._tools, group_id)
            session.accept(state, Epoch(view.epoch, None, view.epoch_authenticator))
            session.flush()

    def decide(self, group_id: bytes, membership: MembershipState) -> None:
        """Agree to be in a group, or reject it (R10)."""
        with self._session(group_id) as session:
            is_it = schema.groups.c.id == group_id
            statement = update(schema.groups).where(is_it)
            session.connection.execute(statement.values(membership_state=membership.value))

    def send(self, group_id: bytes, content: bytes, now_ns: int) -> bytes:
        """Queue a message, and return its id; the row is unpublished until it is read back.

        The same words twice within a nanosecond would be one message: the second gets a later time.
        """
        with self._active(group_id) as session:
            connection, seal, itself = session.connection, self._tools.seal, self._tools.itself
            sent_at_ns = now_ns
            while is_taken(connection, seal, message_id(content, group_id, sent_at_ns)):
                sent_at_ns += 1
            identity = message_id(content, group_id, sent_at_ns)
            insert_message(
                connection,
                seal,
                Message(
                    id=identity,
                    group_id=group_id,
                    kind=MessageKind.APPLICATION,
                    content=content,
                    sent_at_ns=sent_at_ns,
                    sender=itself.public_key,
                    sender_account=account_of(itself.credential),
                    delivery=DeliveryStatus.UNPUBLISHED,
                    epoch=None,
                    place=None,
                ),
            )
            arguments = SendMessage(sent_at_ns, content)
            rows.queue(connection, seal, group_id, arguments, identity)
            return identity

    def queue(self, group_id: bytes, arguments: Arguments) -> int:
        """Queue a change of the group, and return the intent's id; messages go by ``send``."""
        assert not isinstance(arguments, SendMessage), "send makes the message's row"
        with self._active(group_id) as session:
            return rows.queue(session.connection, self._tools.seal, group_id, arguments)

    # News of the network.

    def apply(self, group_id: bytes, received: Iterable[Payload]) -> list[Outcome]:
        """Apply payloads of a group's topic that are next in the causal order, in one transaction.

        Where the engine fails, the payloads before stay applied, and EngineFailed is raised.
        """
        outcomes: list[Outcome] = []
        failure: EngineFailed | None = None
        with self._session(group_id) as session:
            try:
                for outcome in applying.apply(session, received):
                    outcomes.append(outcome)
            except EngineFailed as error:
                failure = error
        if failure is not None:
            raise failure
        return outcomes

    def take_welcome(self, payload: WelcomePayload) -> bytes | None:
        """Take a payload of this installation's topic of welcomes; return the group's id.

        None where no key package opens the welcome, or where it was taken before.
        """
        with self._store.writing() as connection:
            group_id = joining.take_welcome(connection, self._tools, payload)
            if group_id is not None:
                session = Session.load(connection, self._tools, group_id)
                applying.settle(session)
                session.flush()
            return group_id

    def unopened_welcomes(self) -> list[PayloadResult]:
        """Return the welcomes to a key package of this installation that could not be opened."""
        with self._store.reading() as connection:
            return joining.read_unopened(connection, self._tools)

    def retract(self, group_id: bytes, after: int, originator_id: int = 0) -> bool:
        """Take back the chain's payloads behind an id, and return whether the epoch went back.

        The new branch is applied from ``cursor`` on. Raises ReorgTooDeep, and changes nothing,
        where a final payload would be taken back.
        """
        with self._session(group_id) as session:
            is_back = rewinding.retract(session, originator_id, after)
            applying.settle(session)
            return is_back

    def take_back(self, group_id: bytes, gone: Iterable[Payload]) -> bool:
        """Take back payloads that the chain has lost; see ``rewinding.take_back``."""
        with self._session(group_id) as session:
            is_back = rewinding.take_back(session, gone)
            applying.settle(session)
            return is_back

    def have_applied(self, received: Iterable[Payload]) -> bool:
        """Return whether each of some payloads is the one that was applied in its place.

        A payload is not where an earlier one came late, or another process applied another one.
        """
        given = list(received)
        with self._store.reading() as connection:
            return len(applied_of(connection, given)) == len(given)

    def finalize(self, group_id: bytes, sequence_id: int) -> None:
        """Record that the chain's payloads up to an id are final, and delete old states."""
        with self._session(group_id) as session:
            is_deleted = rewinding.finalize(session, sequence_id)
        if is_deleted:
            self._store.forget_deleted()

    def last_final(self, group_id: bytes) -> int:
        """Return the id up to which ``finalize`` recorded the chain's payloads as final."""
        is_it = schema.groups.c.id == group_id
        with self._store.reading() as connection:
            query = select(schema.groups.c.final_sequence_id).where(is_it)
            found: int = connection.execute(query).scalar_one()
            return found

    # On the way out.

    def needed_key_packages(self, intent_id: int) -> tuple[bytes, ...]:
        """Return the installations whose key packages an intent needs."""
        with self._intent(intent_id) as (session, intent):
            return needed_key_packages(session, intent)

    def build(
        self,
        intent_id: int,
        authenticated_data: bytes,
        key_packages: Mapping[bytes, bytes],
        now_ns: int,
    ) -> Outgoing | None:
        """Build an intent and store its payload; see ``building.build``."""
        with self._intent(intent_id) as (session, intent):
            return build(session, intent, authenticated_data, key_packages, now_ns)

    def outgoing(self, intent_id: int) -> Outgoing | None:
        """Return an intent's payload that was built and not read back yet, None for no payload."""
        with self._store.reading() as connection:
            intent = rows.read_intent(connection, self._tools.seal, intent_id)
            if intent is None or intent.state is not IntentState.PUBLISHED:
                return None
            assert intent.payload_hash is not None
            attempt = rows.read_attempt(connection, self._tools.seal, intent.payload_hash)
            assert attempt is not None
        return Outgoing(
            intent.id,
            intent.group_id,
            intent.payload_hash,
            intent.client_envelope,
            intent.is_commit,
            intent.sent_at_ns,
            attempt.built_at_ns,
        )

    def not_taken(self, outgoing: Outgoing) -> None:
        """Record that the network does not hold a payload: the payload may be sent again."""
        self._mark(outgoing, Event.OUTCOME_UNKNOWN, None)

    def conflicts(self, outgoing: Outgoing, authenticated_data: bytes) -> None:
        """Record a 409 for a payload; ``authenticated_data`` is for one that is built now.

        A payload that names other commits than those that were read is built again; else the node
        takes the same bytes once it has what they name.
        """
        if not names_other_commits(outgoing, authenticated_data, self._tools.chain_ids):
            self.not_taken(outgoing)
            return
        self.build_again(outgoing)

    def build_again(self, outgoing: Outgoing) -> None:
        """Let an intent get another payload: nobody will store this one."""
        with self._intent(outgoing.intent_id) as (session, intent):
            if outgoing.is_out(intent):
                session.give_back(intent, Event.CONFLICTED)

    def about_to_send(self, outgoing: Outgoing, now_ns: int) -> bool:
        """Record that a payload is sent again; return False where its intent no longer needs it."""
        return self._mark(outgoing, Event.TAKEN, now_ns)

    def refused(self, outgoing: Outgoing, reason: str) -> None:
        """Record that the network refused a payload; the third refusal gives up the intent."""
        with self._intent(outgoing.intent_id) as (session, intent):
            if not outgoing.is_out(intent):
                return
            refusals = intent.refusals + 1
            session.give_back(intent, Event.REFUSED)
            rows.count_refusals(session.connection, intent.id, refusals)
            if is_given_up(refusals):
                session.give_up(intent, reason)

    def welcomes(self, group_id: bytes) -> list[OutgoingWelcome]:
        """Return the welcomes whose commits were accepted: these may be sent now (R17)."""
        with self._store.reading() as connection:
            ready = rows.read_ready_welcomes(connection, self._tools.seal, group_id)
        found = []
        for attempt in ready:
            assert attempt.welcomes is not None
            data, installations = decode_welcomes(attempt.welcomes)
            key, built_ns = attempt.payload_hash, attempt.built_at_ns
            found += [OutgoingWelcome(key, each, data, built_ns) for each in installations]
        return found

    def welcomes_sent(self, payload_hash: bytes) -> None:
        """Write that all welcomes of a commit were sent."""
        with self._store.writing() as connection:
            rows.send_welcomes(connection, payload_hash)

    def follow_up(self, group_id: bytes) -> None:
        """Move intents that were read back and have no welcome to send to PROCESSED."""
        with self._session(group_id) as session:
            connection, seal = session.connection, self._tools.seal
            ready = rows.read_ready_welcomes(connection, seal, group_id)
            waiting = {each.intent_id for each in ready}
            for intent in rows.read_intents(connection, seal, group_id, (IntentState.COMMITTED,)):
                if intent.id not in waiting:
                    rows.move(connection, intent.id, Event.FOLLOWED_UP)

    # Reading.

    def groups(self) -> list[Group]:
        """Return all groups, the oldest first."""
        with self._store.reading() as connection:
            return read_groups(connection)

    def group(self, group_id: bytes) -> Group:
        """Return a group. Raises NoSuchGroup."""
        with self._store.reading() as connection:
            Session.load(connection, self._tools, group_id)
            return read_group(connection, group_id)

    def view(self, group_id: bytes) -> GroupView:
        """Return epoch and members of a group. Raises NotAMember where it is not joined."""
        with self._store.reading() as connection:
            state = Session.load(connection, self._tools, group_id).state
        return self._tools.engine.view(state)

    def messages(self, group_id: bytes) -> list[Message]:
        """Return the transcript of a group, as the database holds it (R27)."""
        with self._store.reading() as connection:
            return read_messages(connection, self._tools.seal, group_id)

    def intents(
        self, group_id: bytes, states: Iterable[IntentState] = tuple(IntentState)
    ) -> list[Intent]:
        """Return the intents of a group in one of some states, in the order of their ids."""
        with self._store.reading() as connection:
            return rows.read_intents(connection, self._tools.seal, group_id, states)

    def results(self, group_id: bytes) -> list[PayloadResult]:
        """Return the result of each payload of a group's topic (R28)."""
        with self._store.reading() as connection:
            return payloads.read_results(connection, group_topic(group_id))

    def cursor(self, topic: bytes) -> Mapping[int, int]:
        """Return the highest id that was read of a topic, by originator."""
        with self._store.reading() as connection:
            return payloads.read_cursor(connection, topic)

    @property
    def welcome_topic(self) -> bytes:
        """The topic of this installation's welcomes."""
        return TopicKind.WELCOME.topic(self._tools.installation.public_key)

    @contextmanager
    def _session(self, group_id: bytes) -> Iterator[Session]:
        with self._store.writing() as connection:
            session = Session.load(connection, self._tools, group_id)
            yield session
            session.flush()

    @contextmanager
    def _active(self, group_id: bytes) -> Iterator[Session]:
        with self._session(group_id) as session:
            if not session.is_active:
                raise NotAMember(f"group 0x{group_id.hex()}", None, "does not have this client")
            yield session

    @contextmanager
    def _intent(self, intent_id: int) -> Iterator[tuple[Session, Intent]]:
        with self._store.writing() as connection:
            intent = rows.existing_intent(connection, self._tools.seal, intent_id)
            session = Session.load(connection, self._tools, intent.group_id)
            yield session, intent
            session.flush()

    def _mark(self, outgoing: Outgoing, event: Event, sent_at_ns: int | None) -> bool:
        with self._intent(outgoing.intent_id) as (session, intent):
            is_out = outgoing.is_out(intent)
            if is_out:
                rows.move(session.connection, intent.id, event, sent_at_ns=sent_at_ns)
            return is_out
