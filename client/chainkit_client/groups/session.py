"""A group within one transaction: its state, its epoch, and what an accepted commit changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

from sqlalchemy import Connection, bindparam, select, update

from chainkit.errors import ChainkitError
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Place
from chainkit_client.groups import history
from chainkit_client.groups.history import Epoch
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.plaintext import MOST_HISTORY
from chainkit_client.groups.transcript import change_delivery, insert_change
from chainkit_client.intents import rows
from chainkit_client.intents.arguments import KeyUpdate
from chainkit_client.intents.machine import Event, is_too_old
from chainkit_client.mls.engine import PAST_EPOCHS, Installation, Member, MlsEngine
from chainkit_client.storage import payloads, schema
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import DeliveryStatus, IntentState, MessageKind
from chainkit_client.storage.sealing import Seal

_GROUP: Final = select(schema.groups).where(schema.groups.c.id == bindparam("group"))
CHAIN_IDS: Final = frozenset({BLOCKCHAIN_ORIGINATOR_ID})


class NoSuchGroup(ChainkitError):
    """The installation knows no group of an id."""


class NotAMember(ChainkitError):
    """The installation is not in the group now."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The parts that every session uses."""

    seal: Seal
    engine: MlsEngine
    installation: Installation
    chain_ids: frozenset[int] = CHAIN_IDS
    """Originators that are the chain: their order decides between commits."""
    sparse_ids: frozenset[int] = frozenset()
    """Those of them whose payloads come under any sequence ids (ADR 50)."""

    @property
    def itself(self) -> Member:
        """The installation as a member, with leaf -1."""
        own = self.installation
        return Member(-1, own.credential, own.public_key, own.is_backup)


class Session:
    """One group in one transaction. Changes are written by ``flush``, before the commit."""

    def __init__(self, connection: Connection, tools: Tools, row: Any) -> None:
        """Use ``load``."""
        self.connection = connection
        self.tools = tools
        self._read(row)

    def _read(self, row: Any) -> None:
        self.group_id: bytes = row["id"]
        self.topic = group_topic(self.group_id)
        self.is_published: bool = row["is_published"]
        """Whether anything of the group is on the network."""
        self.is_member: bool = row["is_member"]
        self.final_sequence_id: int = row["final_sequence_id"]
        self.forked_at_epoch: int | None = row["forked_at_epoch"]
        self.copied_at_epoch: int | None = row["copied_at_epoch"]
        self.current = history.read_last_epoch(self.connection, self.group_id)
        """None where the group is not joined."""
        self._state: bytes | None = None
        self._is_changed = False
        self._read_up_to: dict[int, tuple[int, int]] = {}
        """Cursor and latest time of each originator that are not written yet."""
        self._recent: list[Epoch] | None = None
        self._results: list[PayloadResult] = []
        """Results of payloads that are not written yet."""

    @classmethod
    def load(cls, connection: Connection, tools: Tools, group_id: bytes) -> Self:
        """Read a group's session from the database. Raises NoSuchGroup."""
        return cls(connection, tools, _row(connection, group_id))

    @property
    def is_active(self) -> bool:
        """Whether this installation can read and send now."""
        return self.current is not None and self.is_member

    @property
    def epoch(self) -> int:
        """The current epoch of a group that is joined."""
        return self._joined().number

    @property
    def authenticator(self) -> bytes:
        """The authenticator of the current epoch of a group that is joined."""
        return self._joined().authenticator

    @property
    def state(self) -> bytes:
        """The MLS state of a group that is joined."""
        if self._state is None:
            found = history.read_state(
                self.connection, self.tools.seal, self.group_id, self.authenticator
            )
            assert found is not None, "states are kept from the final epoch on"
            self._state = found
        return self._state

    def use(self, state: bytes) -> None:
        """Take the state after a message of the current epoch: its keys are used up."""
        self._state, self._is_changed = state, True

    def recent(self) -> list[Epoch]:
        """Return the epochs whose authenticators messages carry, the last one first.

        Only the epochs since this installation joined: other members know earlier epochs better.
        """
        if self._recent is None:
            found = history.read_epochs(self.connection, self.group_id, most=2 * MOST_HISTORY)
            unbroken = found[:1]
            for epoch in found[1:]:
                if unbroken[-1].previous != epoch.number:
                    break
                unbroken.append(epoch)
            self._recent = unbroken
        return self._recent

    def read_up_to(self, originator_id: int, sequence_id: int, time_ns: int) -> None:
        """Move the topic's cursor, and its time, behind a payload."""
        before_id, before_ns = self._read_up_to.get(originator_id, (0, 0))
        after = max(sequence_id, before_id), max(time_ns, before_ns)
        self._read_up_to[originator_id] = after

    def record_result(self, result: PayloadResult) -> None:
        """Record the result of a payload."""
        self._results.append(result)

    def accept(
        self,
        state: bytes,
        epoch: Epoch,
        is_member: bool = True,
    ) -> None:
        """Enter an epoch (R1): by a commit, by a welcome, or as the creator.

        A stored state of this epoch is used instead of ``state``: the stored state has used keys.
        """
        self.flush()
        history.insert_epoch(self.connection, self.group_id, epoch)
        self.current, self._recent = epoch, None
        kept = history.read_state(
            self.connection, self.tools.seal, self.group_id, epoch.authenticator
        )
        self._state, self._is_changed = kept or state, kept is None
        self._set(is_member=is_member)

    def commit(
        self,
        state: bytes,
        authenticator: bytes,
        is_member: bool,
        payload_hash: bytes | None,
        place: Place | None,
        own_intent: int | None = None,
    ) -> None:
        """Enter the next epoch by a commit; own unread payloads of the current epoch are over."""
        before = self._joined()
        number = before.number + 1
        epoch = Epoch(number, before.number, authenticator, payload_hash, place)
        self.accept(state, epoch, is_member)
        self.end_payloads(own_intent)

    def record_members(
        self,
        added: Iterable[Member],
        removed: Iterable[Member],
        sender: Member,
        time_ns: int,
    ) -> None:
        """Write the members that the current epoch's commit added and removed (R18)."""
        changes = [(MessageKind.MEMBER_ADDED, each) for each in added]
        changes += [(MessageKind.MEMBER_REMOVED, each) for each in removed]
        epoch = self._joined()
        for kind, member in changes:
            insert_change(
                self.connection,
                self.tools.seal,
                self.group_id,
                kind,
                member,
                sender,
                epoch.number,
                time_ns,
                epoch.place,
            )

    def go_back(self, first_epoch: int) -> None:
        """Leave the epochs from ``first_epoch`` on, and restore the newest state before."""
        self.flush()
        history.delete_epochs(self.connection, self.group_id, first_epoch)
        self.current = history.read_last_epoch(self.connection, self.group_id)
        self._state = self._recent = None
        if self.current is not None:
            view = self.tools.engine.view(self.state)
            # Where another copy of this database went on, the state is that of the epoch before.
            is_here = view.epoch_authenticator == self.authenticator
            self._set(is_member=view.is_member and is_here)

    def publish_group(self) -> None:
        """Write that the group is on the network from now on."""
        self._set(is_published=True)

    def finalize(self, sequence_id: int) -> None:
        """Write the id up to which the chain's payloads are final."""
        self._set(final_sequence_id=sequence_id)

    def mark_fork(self, epoch: int) -> None:
        """Write the epoch from which another member's history differs; an earlier fork stays."""
        if self.forked_at_epoch is None or epoch < self.forked_at_epoch:
            self._set(forked_at_epoch=epoch)

    def mark_copied(self) -> None:
        """Write that another copy of this database wrote in the current epoch."""
        self._set(copied_at_epoch=self.epoch)

    def renew_keys(self) -> None:
        """Let new keys of this installation come before its next message.

        Another copy of this database used keys that this one has, too: a message with the same key
        is lost for everybody.
        """
        self.mark_copied()
        # Nobody follows a commit of a backup, of which each restore is a copy.
        if not self.waits_for_keys and not self.tools.installation.is_backup:
            rows.queue(self.connection, self.tools.seal, self.group_id, KeyUpdate())

    @property
    def waits_for_keys(self) -> bool:
        """Whether messages wait for a key update, since another copy of this database wrote."""
        if self.copied_at_epoch is None:
            return False
        open_states = (IntentState.TO_SEND, IntentState.PUBLISHED)
        found = rows.read_intents(self.connection, self.tools.seal, self.group_id, open_states)
        return any(isinstance(each.arguments, KeyUpdate) for each in found)

    def flush(self) -> None:
        """Write results, cursors and state, if they changed."""
        payloads.write_results(self.connection, self._results)
        self._results.clear()
        for originator_id, (sequence_id, time_ns) in self._read_up_to.items():
            payloads.move_cursor(self.connection, self.topic, originator_id, sequence_id, time_ns)
        self._read_up_to.clear()
        if self._is_changed:
            self._is_changed = False
            epoch = self._joined()
            history.write_state(
                self.connection,
                self.tools.seal,
                self.group_id,
                epoch.number,
                epoch.authenticator,
                self.state,
            )

    def reload(self) -> None:
        """Read the group from the database again; changes that were not written are lost."""
        self._read(_row(self.connection, self.group_id))

    def give_back(self, intent: rows.Intent, event: Event) -> None:
        """Let an intent be built again, and mark its message unpublished."""
        rows.give_back(self.connection, intent.id, event)
        if intent.message_id is not None:
            change_delivery(
                self.connection, self.tools.seal, intent.message_id, DeliveryStatus.UNPUBLISHED
            )

    def give_up(self, intent: rows.Intent, reason: str) -> None:
        """End an intent that waits as an ERROR."""
        rows.move(self.connection, intent.id, Event.GIVEN_UP, reason=reason)
        if intent.message_id is not None:
            change_delivery(
                self.connection, self.tools.seal, intent.message_id, DeliveryStatus.FAILED
            )

    def end_payloads(self, own_intent: int | None = None) -> None:
        """Let intents be built again whose payloads members no longer accept, or cannot read."""
        published = (IntentState.PUBLISHED,)
        for intent in rows.read_intents(self.connection, self.tools.seal, self.group_id, published):
            epoch = intent.published_in_epoch
            assert epoch is not None
            is_over = intent.is_commit or is_too_old(epoch, self.epoch, PAST_EPOCHS)
            if is_over and intent.id != own_intent:
                self.give_back(intent, Event.EPOCH_OVER)

    def _set(self, **values: int) -> None:
        changed = {name: value for name, value in values.items() if getattr(self, name) != value}
        if changed:
            for name, value in changed.items():
                setattr(self, name, value)
            is_it = schema.groups.c.id == self.group_id
            self.connection.execute(update(schema.groups).where(is_it).values(changed))

    def _joined(self) -> Epoch:
        if self.current is None:
            raise NotAMember(f"group 0x{self.group_id.hex()}", None, "is not joined")
        return self.current


def _row(connection: Connection, group_id: bytes) -> Any:
    row = connection.execute(_GROUP, {"group": group_id}).mappings().one_or_none()
    if row is None:
        raise NoSuchGroup(f"group 0x{group_id.hex()}", "one of this installation", "none")
    return row
