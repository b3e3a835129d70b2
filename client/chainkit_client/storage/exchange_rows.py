"""Requests for history: those of this device, and those of others that its person decides on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from chainkit_client.storage.exchange_schema import RequestStatus, history_asks, history_requests
from chainkit_client.storage.sealing import Seal

_REQUESTS: Final = history_requests
_ASKS: Final = history_asks
_SECRET: Final = "history_requests.secret"
_RESPONSE: Final = "history_requests.response"
_ASKED: Final = "history_asks.request"
_ANSWERED: Final = "history_asks.response"


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request of this device to another one."""

    id: bytes
    """16 random bytes."""
    group_id: bytes
    installation: bytes
    """32 bytes: the device that is asked."""
    created_ns: int
    """Nanoseconds since 1970, as the expiry."""
    expires_ns: int
    status: RequestStatus
    is_sent: bool
    secret: bytes | None = field(repr=False)
    """The message and the key of the file; None once the request is not pending any more."""
    response: bytes | None = field(repr=False)
    """None before a response came, and once it was used."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of another device to this one, which its person decides on."""

    id: bytes
    """16 bytes: the request's id."""
    group_id: bytes
    installation: bytes
    """32 bytes: the device that asks."""
    received_ns: int
    """Nanoseconds since 1970, as the expiry."""
    expires_ns: int
    tries: int
    """Wrong PINs so far."""
    request: bytes = field(repr=False)
    response: bytes | None = field(repr=False)
    """The response, once the file was uploaded."""
    is_sent: bool


def insert_request(connection: Connection, seal: Seal, request: OwnRequest) -> None:
    """Store a request before it is sent (H2)."""
    assert request.secret is not None
    row = {
        "id": request.id,
        "group_id": request.group_id,
        "installation": request.installation,
        "created_ns": request.created_ns,
        "expires_ns": request.expires_ns,
        "status": request.status.value,
        "secret": seal.sealed(request.secret, _SECRET, request.id),
    }
    connection.execute(insert(_REQUESTS).values(row))


def read_requests(connection: Connection, seal: Seal) -> list[OwnRequest]:
    """Return all requests of this device, the oldest first."""
    query = select(_REQUESTS).order_by(_REQUESTS.c.created_ns, _REQUESTS.c.id)
    return [_request(row, seal) for row in connection.execute(query).mappings()]


def read_request(connection: Connection, seal: Seal, request_id: bytes) -> OwnRequest | None:
    """Return a request of this device, None where there is none of this id."""
    query = select(_REQUESTS).where(_REQUESTS.c.id == request_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _request(row, seal)


def mark_request_sent(connection: Connection, request_id: bytes) -> None:
    """Store that a request was handed to its group."""
    connection.execute(_update(_REQUESTS.c.id == request_id).values(is_sent=True))


def keep_response(connection: Connection, seal: Seal, request_id: bytes, content: bytes) -> None:
    """Store the response to a request that has none yet."""
    is_it = (_REQUESTS.c.id == request_id) & _REQUESTS.c.response.is_(None)
    sealed = seal.sealed(content, _RESPONSE, request_id)
    connection.execute(_update(is_it).values(response=sealed))


def end_request(connection: Connection, request_id: bytes, status: RequestStatus) -> None:
    """Give a request its last status, and delete its key and its response (H8, H9)."""
    values = {"status": status.value, "secret": None, "response": None}
    connection.execute(_update(_REQUESTS.c.id == request_id).values(values))


def delete_request(connection: Connection, request_id: bytes) -> None:
    """Delete a request of which nothing was sent."""
    connection.execute(delete(_REQUESTS).where(_REQUESTS.c.id == request_id))


def insert_ask(connection: Connection, seal: Seal, ask: Ask) -> None:
    """Store a request of another device."""
    row = {
        "id": ask.id,
        "group_id": ask.group_id,
        "installation": ask.installation,
        "received_ns": ask.received_ns,
        "expires_ns": ask.expires_ns,
        "request": seal.sealed(ask.request, _ASKED, ask.id),
    }
    connection.execute(insert(_ASKS).values(row))


def count_asks(connection: Connection) -> int:
    """Count the requests that wait for a decision."""
    return connection.scalar(select(func.count()).select_from(_ASKS)) or 0


def read_asks(connection: Connection, seal: Seal) -> list[Ask]:
    """Return the requests of other devices, the oldest first."""
    query = select(_ASKS).order_by(_ASKS.c.received_ns, _ASKS.c.id)
    return [_ask(row, seal) for row in connection.execute(query).mappings()]


def read_ask(connection: Connection, seal: Seal, request_id: bytes) -> Ask | None:
    """Return a request of another device, None where there is none of this id."""
    query = select(_ASKS).where(_ASKS.c.id == request_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _ask(row, seal)


def count_try(connection: Connection, request_id: bytes) -> None:
    """Count a wrong PIN."""
    is_it = _ASKS.c.id == request_id
    connection.execute(update(_ASKS).where(is_it).values(tries=_ASKS.c.tries + 1))


def answer_ask(connection: Connection, seal: Seal, request_id: bytes, content: bytes) -> None:
    """Store the response to a request, before it is sent."""
    sealed = seal.sealed(content, _ANSWERED, request_id)
    connection.execute(update(_ASKS).where(_ASKS.c.id == request_id).values(response=sealed))


def mark_ask_sent(connection: Connection, request_id: bytes) -> None:
    """Store that a response was handed to its group."""
    connection.execute(update(_ASKS).where(_ASKS.c.id == request_id).values(is_sent=True))


def delete_ask(connection: Connection, request_id: bytes) -> None:
    """Delete a request of another device, and its response (H16, H19)."""
    connection.execute(delete(_ASKS).where(_ASKS.c.id == request_id))


def _update(condition: ColumnElement[bool]) -> Any:
    is_pending = _REQUESTS.c.status == RequestStatus.PENDING.value
    return update(_REQUESTS).where(condition, is_pending)


def _request(row: Any, seal: Seal) -> OwnRequest:
    return OwnRequest(
        row["id"],
        row["group_id"],
        row["installation"],
        row["created_ns"],
        row["expires_ns"],
        RequestStatus(row["status"]),
        bool(row["is_sent"]),
        _opened(seal, row["secret"], _SECRET, row["id"]),
        _opened(seal, row["response"], _RESPONSE, row["id"]),
    )


def _ask(row: Any, seal: Seal) -> Ask:
    return Ask(
        row["id"],
        row["group_id"],
        row["installation"],
        row["received_ns"],
        row["expires_ns"],
        row["tries"],
        seal.opened(row["request"], _ASKED, row["id"]),
        _opened(seal, row["response"], _ANSWERED, row["id"]),
        bool(row["is_sent"]),
    )


def _opened(seal: Seal, sealed: bytes | None, column: str, row: bytes) -> bytes | None:
    return None if sealed is None else seal.opened(sealed, column, row)
