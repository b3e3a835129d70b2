"""The tables of history that one device of a person asks another one for."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, Table, text

from chainkit_client.storage import imported_schema

metadata: Final = imported_schema.metadata
"""The tables of all modules."""


class RequestStatus(IntEnum):
    """The state of a request (XIP-31's BackupRequestStatus)."""

    PENDING = 1
    EXPIRED = 2
    APPLIED = 3
    FAILED = 4


sync_groups: Final = Table(
    # Groups of the person's own devices, which only requests and responses travel in.
    "sync_groups",
    metadata,
    Column("group_id", LargeBinary, primary_key=True),
    # Whether all that the group held was deleted.
    Column("is_forgotten", Boolean, nullable=False, server_default=text("0")),
)

control_messages: Final = Table(
    # Messages for the program, of members that name the own inbox, until they are taken.
    "control_messages",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("group_id", LargeBinary, nullable=False),
    # 32 bytes: the installation that sent the message.
    Column("sender", LargeBinary, nullable=False),
    # Sealed.
    Column("content", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)

history_requests: Final = Table(
    # Requests of this device: one row for each device that it asks.
    "history_requests",
    metadata,
    # 16 random bytes.
    Column("id", LargeBinary, primary_key=True),
    Column("group_id", LargeBinary, nullable=False, index=True),
    # 32 bytes: the device that was asked.
    Column("installation", LargeBinary, nullable=False),
    # Nanoseconds since 1970.
    Column("created_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger, nullable=False),
    # A RequestStatus.
    Column("status", Integer, nullable=False),
    Column("is_sent", Boolean, nullable=False, server_default=text("0")),
    # Sealed: PIN, key of the file and upload URL; null once it is not pending any more.
    Column("secret", LargeBinary),
    # Sealed: the response; null before it came, and once it was used.
    Column("response", LargeBinary),
)

history_asks: Final = Table(
    # Requests of other devices, until the person decides.
    "history_asks",
    metadata,
    # The request's id: 16 bytes.
    Column("id", LargeBinary, primary_key=True),
    Column("group_id", LargeBinary, nullable=False, index=True),
    # 32 bytes: the device that asks.
    Column("installation", LargeBinary, nullable=False),
    # Nanoseconds since 1970.
    Column("received_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger, nullable=False),
    # Wrong PINs so far.
    Column("tries", Integer, nullable=False, server_default=text("0")),
    # Sealed: the request.
    Column("request", LargeBinary, nullable=False),
    # Sealed: the response, once the file was uploaded.
    Column("response", LargeBinary),
    Column("is_sent", Boolean, nullable=False, server_default=text("0")),
)
