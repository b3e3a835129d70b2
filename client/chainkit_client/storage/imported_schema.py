"""The tables of messages that another device of the person has sent: none of them proves itself."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from chainkit_client.storage import schema

metadata: Final = schema.metadata
"""The tables of both modules."""


class Standing(IntEnum):
    """How nodes and chain judge an imported row; null where nobody was asked."""

    PROVEN = 1
    """The row's place has the envelope whose digest the row names."""
    EXPIRED = 2
    """No node has the envelope any more: it is older than the shortest retention."""
    INVENTED = 3
    """No node has the envelope, though no node may have deleted it yet."""
    DISPUTED = 4
    """Two rows claim one place, or two devices tell one message differently."""
    PLACELESS = 5
    """The row names no place, as a group's first commit has none."""


imported_files: Final = Table(
    "imported_files",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    # SHA-256 of the file's lines; null until the last line was read.
    Column("digest", LargeBinary, unique=True),
    # 32 bytes: the installation that signed the file.
    Column("installation", LargeBinary, nullable=False),
    # Nanoseconds since 1970: by the provider's clock, and by the clock here.
    Column("created_ns", BigInteger, nullable=False),
    Column("imported_ns", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

imported_groups: Final = Table(
    # How far a device says that it read a group.
    "imported_groups",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("imported_files.id"), nullable=False),
    Column("group_id", LargeBinary, nullable=False, index=True),
    # Nanoseconds since 1970: when the device joined, or the beginning of the chosen time.
    Column("since_ns", BigInteger, nullable=False),
    # JSON: the highest id that was read of each originator, and places that have no message.
    Column("read_ids", String, nullable=False),
    Column("skipped", String, nullable=False),
)

imported_messages: Final = Table(
    # As ``group_messages``: a message has the same tag in both.
    "imported_messages",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("file_id", Integer, ForeignKey("imported_files.id"), nullable=False),
    Column("group_id", LargeBinary, nullable=False),
    # Sealed.
    Column("sealed_message", LargeBinary, nullable=False),
    Column("epoch", BigInteger),
    Column("originator_id", BigInteger),
    Column("sequence_id", BigInteger),
    Column("originator_ns", BigInteger),
    Column("expires_at", BigInteger),
    Column("warning", String, nullable=False),
    # keccak256 of the UnsignedOriginatorEnvelope; null without a place.
    Column("digest", LargeBinary),
    # Sealed JSON: fields of later versions; null for none.
    Column("unknown_fields", LargeBinary),
    # A Standing.
    Column("standing", Integer),
    Index("imported_messages_group_id", "group_id"),
)
