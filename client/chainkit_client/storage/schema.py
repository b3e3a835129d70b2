"""The tables of the client's database, and the numbers that stand for kinds and states in them.

The first four tables are from XMTP's published client state, with columns that correctness needs.
Sealed columns and tags (``sealing``) say so. The other columns hold nothing that MLS hides: any
node knows them, or they are states of this client.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)

VERSION: Final = 6
"""``PRAGMA user_version`` of a database with these tables."""

metadata: Final = MetaData()


class MembershipState(IntEnum):
    """Whether the user agreed to be in a group."""

    ALLOWED = 1
    REJECTED = 2
    PENDING = 3


class MessageKind(IntEnum):
    """The kind of a row of a transcript."""

    APPLICATION = 1
    MEMBER_ADDED = 2
    MEMBER_REMOVED = 3
    UNREADABLE = 4
    """A member's message that nobody can open."""
    LEFT_BEHIND = 5
    """A commit of another copy of this database, which this copy cannot follow."""


class DeliveryStatus(IntEnum):
    """Whether a message was read back from the network."""

    PUBLISHED = 1
    UNPUBLISHED = 2
    FAILED = 3


class IntentKind(IntEnum):
    """The purpose of an intent."""

    SEND_MESSAGE = 1
    ADD_MEMBERS = 2
    REMOVE_MEMBERS = 3
    KEY_UPDATE = 4


class IntentState(IntEnum):
    """How far an intent is (``intents.machine``)."""

    TO_SEND = 1
    PUBLISHED = 2
    COMMITTED = 3
    PROCESSED = 4
    ERROR = 5


class WelcomeState(IntEnum):
    """How far the welcomes of a commit are."""

    PENDING = 1
    """The welcomes wait until their commit is accepted."""
    READY_TO_SEND = 2
    SENT = 3


class PayloadStatus(IntEnum):
    """The fate of a payload of a topic."""

    SUCCEEDED = 1
    FAILED = 2
    WAITING = 3
    """The payload's epoch is not reached yet."""


groups: Final = Table(
    "groups",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    # Nanoseconds since 1970: of the welcome, or of the creation.
    Column("created_at_ns", BigInteger, nullable=False, index=True),
    Column("membership_state", Integer, nullable=False, index=True),
    # Whether the group is on the network: not before the first commit that adds others.
    Column("is_published", Boolean, nullable=False),
    Column("is_member", Boolean, nullable=False),
    # Chain payloads of the group's topic up to this id are final.
    Column("final_sequence_id", BigInteger, nullable=False, server_default=text("0")),
    # The first epoch in which another member's history differs; null for no fork.
    Column("forked_at_epoch", BigInteger),
    # The last epoch in which another copy of this database wrote; null for none.
    Column("copied_at_epoch", BigInteger),
)

group_messages: Final = Table(
    "group_messages",
    metadata,
    # A tag of the message's id, which is a hash of the words.
    Column("id", LargeBinary, primary_key=True),
    Column("group_id", LargeBinary, ForeignKey("groups.id"), nullable=False),
    # Sealed: decrypted_message_bytes, sent_at_ns, kind, sender_installation_id and
    # sender_account_address of XMTP's text.
    Column("sealed_message", LargeBinary, nullable=False),
    # Whether the row is a change of members, which a reorg takes back.
    Column("is_change", Boolean, nullable=False),
    Column("delivery_status", Integer, nullable=False),
    # The epoch of sending, or the epoch of the change's commit; null before publication.
    Column("epoch", BigInteger),
    # The place of the payload, its originator's time in nanoseconds since 1970 and its expiry in
    # seconds; null before publication, the expiry also where there is none.
    Column("originator_id", BigInteger),
    Column("sequence_id", BigInteger),
    Column("originator_ns", BigInteger),
    Column("expires_at", BigInteger),
    # Words for people, such as a dependency that nobody has.
    Column("warning", String, nullable=False, server_default=""),
    Index("group_messages_group_id", "group_id"),
)

topic_refresh_state: Final = Table(
    "topic_refresh_state",
    metadata,
    Column("topic", LargeBinary, primary_key=True),
    Column("last_message_timestamp_ns", BigInteger, nullable=False),
)

group_intents: Final = Table(
    "group_intents",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    # Whether the payload is a commit: nodes know this much of an intent's kind.
    Column("is_commit", Boolean, nullable=False),
    Column("group_id", LargeBinary, ForeignKey("groups.id"), nullable=False),
    # Sealed: the intent's kind and arguments, which stay.
    Column("data", LargeBinary, nullable=False),
    # The built ClientEnvelope; empty while there is none.
    Column("publish_data", LargeBinary, nullable=False),
    Column("state", Integer, nullable=False),
    # Hash of the built MLS message: message_hash in XMTP's text, whose staged_commit and
    # post_commit_data are in ``attempts``: each of an intent's payloads may be the accepted one.
    Column("payload_hash", LargeBinary),
    # The epoch for which the intent was built, or in which it had nothing to do.
    Column("published_in_epoch", BigInteger),
    Column("publish_attempts", Integer, nullable=False, server_default=text("0")),
    # The number of refusals; the third refusal gives up the intent.
    Column("refusals", Integer, nullable=False, server_default=text("0")),
    # Nanoseconds since 1970 of the newest payload's last sending. A payload that may be on its way
    # is looked up before it is sent again. Null where the network lacks the payload.
    Column("sent_at_ns", BigInteger),
    # The place where the payload was read.
    Column("originator_id", BigInteger),
    Column("sequence_id", BigInteger),
    # Sealed: the id of a SEND_MESSAGE's message.
    Column("message_id", LargeBinary),
    # Words for people, of an ERROR.
    Column("reason", String, nullable=False, server_default=""),
    Index("group_intents_group_id_id", "group_id", "id"),
    sqlite_autoincrement=True,
)
# Two commits of one epoch exclude each other.
Index(
    "group_intents_one_commit_out",
    group_intents.c.group_id,
    unique=True,
    sqlite_where=text(f"state = {IntentState.PUBLISHED.value} AND is_commit"),
)

attempts: Final = Table(
    # Each payload that was ever built: the network may deliver any payload late, or twice.
    "attempts",
    metadata,
    Column("payload_hash", LargeBinary, primary_key=True),
    Column("intent_id", Integer, ForeignKey("group_intents.id"), nullable=False, index=True),
    Column("group_id", LargeBinary, ForeignKey("groups.id"), nullable=False),
    # The payload's epoch and authenticator: a payload is of no use on another branch.
    Column("epoch", BigInteger, nullable=False),
    Column("authenticator", LargeBinary, nullable=False),
    # Nanoseconds since 1970, before the first sending of the payload, and of its welcomes.
    Column("built_at_ns", BigInteger, nullable=False),
    # Sealed: the state after a commit, until its epoch is final.
    Column("staged_commit", LargeBinary),
    # Sealed: a commit's welcomes, until the epoch is final and the welcomes are sent.
    Column("post_commit_data", LargeBinary),
    # A WelcomeState; null for no welcomes.
    Column("welcome_state", Integer),
)

group_epochs: Final = Table(
    # The history of a group: each accepted commit adds a row, and a reorg removes the last rows.
    "group_epochs",
    metadata,
    Column("group_id", LargeBinary, ForeignKey("groups.id"), primary_key=True),
    Column("epoch", BigInteger, primary_key=True),
    # Null for the epoch in which this installation joined.
    Column("previous_epoch", BigInteger),
    # 32 bytes, the same for all members with the same history.
    Column("authenticator", LargeBinary, nullable=False),
    # The epoch's commit; null where the commit was not published.
    Column("payload_hash", LargeBinary),
    Column("originator_id", BigInteger),
    Column("sequence_id", BigInteger),
    CheckConstraint("previous_epoch = epoch - 1", "epochs_increase_by_one"),
    ForeignKeyConstraint(
        ["group_id", "previous_epoch"], ["group_epochs.group_id", "group_epochs.epoch"]
    ),
)

group_states: Final = Table(
    # MLS states from the final epoch on, also of branches that a reorg took back: a used state must
    # not start anew, or two messages would have one key.
    "group_states",
    metadata,
    Column("group_id", LargeBinary, ForeignKey("groups.id"), primary_key=True),
    Column("authenticator", LargeBinary, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    # Sealed.
    Column("state", LargeBinary, nullable=False),
)

topic_cursors: Final = Table(
    # Equal times lose messages, and ids do not.
    "topic_cursors",
    metadata,
    Column("topic", LargeBinary, primary_key=True),
    Column("originator_id", BigInteger, primary_key=True),
    Column("sequence_id", BigInteger, nullable=False),
)

payload_results: Final = Table(
    "payload_results",
    metadata,
    Column("topic", LargeBinary, primary_key=True),
    Column("originator_id", BigInteger, primary_key=True),
    Column("sequence_id", BigInteger, primary_key=True),
    Column("payload_hash", LargeBinary, nullable=False),
    # A PayloadStatus.
    Column("status", Integer, nullable=False),
    # Words for people.
    Column("reason", String, nullable=False, server_default=""),
    # The epoch that the header claims; null without an epoch.
    Column("epoch", BigInteger),
    # The encrypted sender data of a message that was read, which a copy of the message has, too.
    Column("sender_data", LargeBinary),
    # The authenticator with which the payload failed: with the same one it would fail again.
    Column("tried_with", LargeBinary),
    # The payload, for as long as it may succeed later.
    Column("originator_ns", BigInteger, nullable=False),
    Column("message", LargeBinary),
    Column("aad_hash", LargeBinary),
    Column("warning", String, nullable=False, server_default=""),
    Column("expires_at", BigInteger),
    Index("payload_results_sender_data", "topic", "sender_data"),
    Index("payload_results_kept", "topic", "epoch", sqlite_where=text("message IS NOT NULL")),
)

installation: Final = Table(
    "installation",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("public_key", LargeBinary, nullable=False),
    Column("credential", LargeBinary, nullable=False),
    # Sealed.
    Column("secret", LargeBinary, nullable=False),
)

key_packages: Final = Table(
    "key_packages",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("public", LargeBinary, nullable=False),
    # Sealed.
    Column("secret", LargeBinary, nullable=False),
    # Nanoseconds since 1970, before the first sending.
    Column("created_ns", BigInteger, nullable=False),
    # Whether a welcome was opened with it.
    Column("is_used", Boolean, nullable=False, server_default=text("0")),
    # Whether it was published.
    Column("is_offered", Boolean, nullable=False, server_default=text("0")),
)

proved_members: Final = Table(
    # Installations that were seen in the inbox which they name.
    "proved_members",
    metadata,
    # A tag of the installation's key and its credential.
    Column("tag", LargeBinary, primary_key=True),
)

posted_updates: Final = Table(
    # Updates of inboxes that the chain gave, and up to which block.
    "posted_updates",
    metadata,
    # A tag of the contract, the inbox and the endpoint's name.
    Column("tag", LargeBinary, primary_key=True),
    # Sealed.
    Column("found", LargeBinary, nullable=False),
    # Nanoseconds since 1970.
    Column("stored_ns", BigInteger, nullable=False, index=True),
)

welcomes: Final = Table(
    # Opened welcomes: each joins its group at its commit's place on the chain.
    "welcomes",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("group_id", LargeBinary, ForeignKey("groups.id"), nullable=False, index=True),
    # Null where the commit was not published.
    Column("commit_hash", LargeBinary),
    Column("epoch", BigInteger, nullable=False),
    Column("authenticator", LargeBinary, nullable=False),
    # Sealed; null once the state is no longer needed.
    Column("state", LargeBinary),
    Column("originator_ns", BigInteger, nullable=False),
)

kept_envelopes: Final = Table(
    # Envelopes as their originators signed them, also waiting ones: the proof of each row of a
    # transcript, and the beginning of a topic when the program starts again.
    "kept_envelopes",
    metadata,
    Column("originator_id", BigInteger, primary_key=True),
    Column("sequence_id", BigInteger, primary_key=True),
    Column("topic", LargeBinary, nullable=False, index=True),
    Column("envelope", LargeBinary, nullable=False),
)

breaches: Final = Table(
    # Rules that nodes broke, each stored once, before a report is sent.
    "breaches",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("node_id", BigInteger, nullable=False),
    # The type's number in XIP-49 §3.2.7; null without a type.
    Column("misbehavior", Integer),
    # Words for people.
    Column("reason", String, nullable=False),
    # An UnsignedMisbehaviorReport; null without a type.
    Column("report", LargeBinary),
    Column("seen_ns", BigInteger, nullable=False),
    # How many nodes took the report.
    Column("taken_by", Integer, nullable=False, server_default=text("0")),
)

promised_envelopes: Final = Table(
    # Answers to publishes that no topic has had yet: a head that denies one is evidence.
    "promised_envelopes",
    metadata,
    Column("originator_id", BigInteger, primary_key=True),
    Column("sequence_id", BigInteger, primary_key=True),
    Column("envelope", LargeBinary, nullable=False),
    # Nanoseconds since 1970: the clock at the answer.
    Column("kept_ns", BigInteger, nullable=False),
)

unknown_payloads: Final = Table(
    # Payloads that a node vouched for and the chain does not have: no proof, because a reorg may
    # have taken a payload back.
    "unknown_payloads",
    metadata,
    # keccak256 of the envelope.
    Column("id", LargeBinary, primary_key=True),
    Column("node_id", BigInteger, nullable=False, index=True),
    Column("envelope", LargeBinary, nullable=False),
    Column("seen_ns", BigInteger, nullable=False),
)

keyring: Final = Table(
    "keyring",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("salt", LargeBinary, nullable=False),
    Column("cost", Integer, nullable=False),
    Column("sealed_key", LargeBinary, nullable=False),
)
