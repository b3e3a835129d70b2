"""The arguments of intents as stored bytes, from which an intent can be built again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from chainkit.errors import MalformedData
from chainkit_client.storage.schema import IntentKind

INSTALLATION_LENGTH: Final = 32
"""Bytes of an installation's public key."""
_TIME_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A message of the user."""

    sent_at_ns: int
    """The sender's clock in nanoseconds since 1970."""
    content: bytes

    kind = IntentKind.SEND_MESSAGE


@dataclass(frozen=True, slots=True)
class AddMembers:
    """Installations to add, by their public keys of 32 bytes."""

    installations: tuple[bytes, ...]

    kind = IntentKind.ADD_MEMBERS


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    """Installations to remove, by their public keys of 32 bytes."""

    installations: tuple[bytes, ...]

    kind = IntentKind.REMOVE_MEMBERS


@dataclass(frozen=True, slots=True)
class KeyUpdate:
    """New keys of this installation."""

    kind = IntentKind.KEY_UPDATE


Arguments: TypeAlias = SendMessage | AddMembers | RemoveMembers | KeyUpdate


def encode_arguments(arguments: Arguments) -> bytes:
    """Write kind and arguments of an intent. Raises MalformedData for a key of another length."""
    return bytes([arguments.kind]) + _encoded(arguments)


def decode_arguments(data: bytes) -> Arguments:
    """Read what ``encode_arguments`` wrote."""
    kind, rest = IntentKind(data[0]), data[1:]
    if kind is IntentKind.SEND_MESSAGE:
        return SendMessage(int.from_bytes(rest[:_TIME_LENGTH], "big"), rest[_TIME_LENGTH:])
    if kind is IntentKind.KEY_UPDATE:
        return KeyUpdate()
    starts = range(0, len(rest), INSTALLATION_LENGTH)
    installations = tuple(rest[start : start + INSTALLATION_LENGTH] for start in starts)
    return (AddMembers if kind is IntentKind.ADD_MEMBERS else RemoveMembers)(installations)


def _encoded(arguments: Arguments) -> bytes:
    match arguments:
        case SendMessage():
            return arguments.sent_at_ns.to_bytes(_TIME_LENGTH, "big") + arguments.content
        case AddMembers() | RemoveMembers():
            for each in arguments.installations:
                if len(each) != INSTALLATION_LENGTH:
                    expected = f"{INSTALLATION_LENGTH} bytes"
                    raise MalformedData("key of an installation", expected, f"{len(each)} bytes")
            return b"".join(arguments.installations)
        case KeyUpdate():
            return b""
