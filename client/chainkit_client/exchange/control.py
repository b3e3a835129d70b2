"""Requests and responses as messages of a sync group, version 1: a prefix, and one JSON object.

::

    {"kind":"history-request","version":1,"id":…,"installation":…,"pin":"0427","upload_url":…,
     "recipient":"age1…","expires_ns":…}
    {"kind":"history-response","version":1,"id":…,"backup_url":…,"file_hash":…,"length":…,
     "recipient":"age1…","expires_ns":…}

The fields are XIP-31's. In place of a key, the request names a recipient: the key that opens the
file never leaves the device that asks. MLS says who sent a message. A reader ignores fields and
kinds that it does not know.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from chainkit.documents.fields import Fields, parse_json
from chainkit.errors import ConfigurationError, MalformedData
from chainkit_client.groups.control import CONTROL_PREFIX

REQUEST_ID_LENGTH: Final = 16
MOST_FILE_BYTES: Final = 1 << 31
"""Bytes of a history file: the largest that a storage service takes by default."""

_VERSION: Final = 1
_KEY_LENGTH: Final = 32
_LARGEST: Final = 2**63 - 1
_PIN: Final = re.compile("[0-9]{4}")
_URL: Final = re.compile("[!-~]{1,2048}")
_RECIPIENT: Final = re.compile("age1[0-9a-z]{58}")
_WORD: Final = re.compile("[a-z-]{1,40}")
_SUBJECT: Final = "message of another device"


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """XIP-31's MessageHistoryBackupRequest."""

    id: bytes
    """16 random bytes."""
    installation: bytes
    """32 bytes: the device that is asked."""
    pin: str = field(repr=False)
    """Four digits, which both devices' person compares; it is no key."""
    upload_url: str = field(repr=False)
    """Takes one file, once."""
    recipient: str = ""
    """An age recipient: its key opens the file."""
    expires_ns: int = 0
    """Nanoseconds since 1970."""

    def encoded(self) -> bytes:
        """Return the content of a message."""
        return _encoded(
            "history-request",
            id=_hex(self.id),
            installation=_hex(self.installation),
            pin=self.pin,
            upload_url=self.upload_url,
            recipient=self.recipient,
            expires_ns=self.expires_ns,
        )


@dataclass(frozen=True, slots=True)
class HistoryResponse:
    """XIP-31's MessageHistoryBackupResponse."""

    id: bytes
    """The request's id."""
    backup_url: str = field(repr=False)
    file_hash: bytes
    """32 bytes: SHA-256 of the encrypted file."""
    length: int
    """Bytes of the file: the other device reads no more."""
    recipient: str
    """The one of the request: whose key opens the file."""
    expires_ns: int
    """Nanoseconds since 1970, after which the file may be gone."""

    def encoded(self) -> bytes:
        """Return the content of a message."""
        return _encoded(
            "history-response",
            id=_hex(self.id),
            backup_url=self.backup_url,
            file_hash=_hex(self.file_hash),
            length=self.length,
            recipient=self.recipient,
            expires_ns=self.expires_ns,
        )


def parse_control(data: bytes) -> HistoryRequest | HistoryResponse | None:
    """Return what a message for the program says, None for a kind that is not known.

    Raises MalformedData.
    """
    if not data.startswith(CONTROL_PREFIX):
        raise MalformedData(_SUBJECT, "one for the program", "another")
    try:
        fields = Fields(parse_json(data.removeprefix(CONTROL_PREFIX), _SUBJECT), _SUBJECT)
        return _parsed(fields)
    except ConfigurationError as error:
        raise MalformedData(error.subject, error.expected, error.got, error.place) from error


def _parsed(fields: Fields) -> HistoryRequest | HistoryResponse | None:
    kind = fields.matching("kind", _WORD, "a kind")[0]
    if fields.integer("version") != _VERSION:
        return None
    if kind == "history-request":
        return HistoryRequest(
            fields.bytes("id", REQUEST_ID_LENGTH),
            fields.bytes("installation", _KEY_LENGTH),
            fields.matching("pin", _PIN, "four digits")[0],
            fields.matching("upload_url", _URL, "a URL")[0],
            fields.matching("recipient", _RECIPIENT, "an age recipient")[0],
            fields.integer("expires_ns", _LARGEST),
        )
    if kind == "history-response":
        return HistoryResponse(
            fields.bytes("id", REQUEST_ID_LENGTH),
            fields.matching("backup_url", _URL, "a URL")[0],
            fields.bytes("file_hash", _KEY_LENGTH),
            fields.integer("length", MOST_FILE_BYTES),
            fields.matching("recipient", _RECIPIENT, "an age recipient")[0],
            fields.integer("expires_ns", _LARGEST),
        )
    return None


def _encoded(kind: str, **values: Any) -> bytes:
    content = {"kind": kind, "version": _VERSION, **values}
    return CONTROL_PREFIX + json.dumps(content, separators=(",", ":")).encode()


def _hex(data: bytes) -> str:
    return f"0x{data.hex()}"
