"""Reads the message of a request, which a stranger wrote, for no more work than it is worth.

A message of 24 MiB has room for 12 million empty entries, which take a second and half a gigabyte
to parse. So the entries of a large message are counted first, up to the most that there may be.
"""

from __future__ import annotations

from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from chainkit.protocol.strict import Deviation, NotStrict, check_strict
from chainkit.service.refusals import InvalidRequest

LARGE_BYTES: Final = 64 << 10
"""A smaller message is parsed within a few milliseconds, whatever is in it."""

_Message = TypeVar("_Message", bound=Message)


def parse_request(kind: type[_Message], data: bytes, most_entries: int) -> _Message:
    """Return a request's message; a large one has at most so many entries, with all within.

    A large one must be what all readers read alike, too. Raises InvalidRequest.
    """
    if len(data) > LARGE_BYTES:
        _check_entries(kind, data, most_entries)
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise InvalidRequest("request", f"bytes of {kind.DESCRIPTOR.name}", error) from error


def _check_entries(kind: type[Message], data: bytes, most: int) -> None:
    try:
        check_strict(data, kind, most)
    except NotStrict as error:
        if error.deviation is Deviation.TOO_MANY_FIELDS:
            raise InvalidRequest("entries of the request", f"at most {most}", "more") from None
        raise InvalidRequest(error.subject, error.expected, error.got) from None
