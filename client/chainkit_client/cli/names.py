"""The words that name a group, a message or an inbox on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from eth_utils.address import is_checksum_address

from chainkit.errors import ConfigurationError
from chainkit_client.groups.overview import Group
from chainkit_client.groups.transcript import Message
from chainkit_client.storage.schema import MembershipState

_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")
_INBOX: Final = re.compile("[0-9a-f]{64}")
_BEGINNING: Final = re.compile("[0-9a-f]+")
_MOST_LISTED: Final = 5
SHORT: Final = 8
"""Hex digits of a group's or message's id that are shown where people choose among few."""
NAME: Final = 20
"""Hex digits of an inbox or an installation: nobody makes another one that begins so."""


def short(identity: bytes | str) -> str:
    """Return the beginning of an id."""
    text = identity if isinstance(identity, str) else identity.hex()
    return text[:SHORT]


def find_group(groups: Sequence[Group], text: str) -> Group:
    """Return the group with an id, or a beginning of one, in hex. Raises ConfigurationError."""
    return groups[found_index("GROUP", "group", [each.id for each in groups], text)]


def find_joined(groups: Sequence[Group], text: str) -> Group:
    """Return a group that the user has accepted, as ``find_group``."""
    group = find_group(groups, text)
    if group.membership is not MembershipState.ALLOWED:
        expected = f"one that you are in: `chainkit client accept {short(group.id)}`"
        got = "an invitation" if group.membership is MembershipState.PENDING else "a rejected one"
        raise ConfigurationError(f"group {short(group.id)}", expected, got)
    return group


def find_message(messages: Sequence[Message], text: str) -> Message:
    """Return the message with an id, or a beginning of one, in hex. Raises ConfigurationError."""
    return messages[found_index("MESSAGE", "message", [each.id for each in messages], text)]


def checked_names(names: Iterable[str]) -> list[str]:
    """Return names of inboxes, each an id or an address. Raises ConfigurationError for a typo.

    An address in mixed case has a checksum, which finds nearly every one.
    """
    return [_checked(each) for each in names]


def _checked(name: str) -> str:
    if _ADDRESS.fullmatch(name):
        digits = name[2:]
        if digits not in (digits.lower(), digits.upper()) and not is_checksum_address(name):
            expected = "an address with the right checksum (capital letters)"
            raise ConfigurationError("NAME", expected, name)
        return name.lower()
    if not _INBOX.fullmatch(name.lower()):
        expected = "an inbox id (64 hex digits), or an address (0x and 40 hex digits)"
        raise ConfigurationError("NAME", expected, repr(name))
    return name.lower()


def found_index(subject: str, kind: str, ids: Sequence[bytes], text: str) -> int:
    """Return which id, or beginning of one, a text is. Raises ConfigurationError."""
    beginning = text.strip().lower().removeprefix("0x")
    is_hex = _BEGINNING.fullmatch(beginning) is not None
    found = [index for index, each in enumerate(ids) if is_hex and each.hex().startswith(beginning)]
    if len(found) > 1:
        listed = ", ".join(short(ids[each]) for each in found[:_MOST_LISTED])
        raise ConfigurationError(subject, f"the beginning of one {kind}'s id", f"that of {listed}")
    if not found:
        known = ", ".join(map(short, ids[-_MOST_LISTED:])) or "there is none yet"
        raise ConfigurationError(subject, f"the beginning of a {kind}'s id: {known}", repr(text))
    return found[0]
