"""Bounds the lists of a welcome before the engine sees them (RFC 9420 §12.4.3.1).

A welcome of 4 MiB holds 1.4 million empty secrets, each of which becomes an object of the engine.
"""

from __future__ import annotations

from typing import Final

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.message import MLS_VERSION
from chainkit.protocol.mls.presentation import Reader
from chainkit_client.mls.engine import MlsRefused

MOST_INVITED: Final = 1024
"""Members whom one welcome invites: the most of a group."""

_WIRE_FORMAT: Final = 3
"""``WireFormat`` mls_welcome (RFC 9420 §6)."""


def check_welcome_bounds(welcome: bytes) -> None:
    """Raise MlsRefused where an MLSMessage is no welcome, or invites more than MOST_INVITED."""
    reader = Reader(welcome, "welcome")
    try:
        head = reader.integer(2), reader.integer(2)
        if head != (MLS_VERSION, _WIRE_FORMAT):
            raise reader.malformed("an MLSMessage with a Welcome", f"0x{welcome[:4].hex()}")
        reader.integer(2)
        secrets, count = reader.items(), 0
        while not secrets.is_at_end:
            # The key package's reference, and the two parts of the encrypted secrets.
            for _ in range(3):
                secrets.vector()
            count += 1
            if count > MOST_INVITED:
                raise secrets.malformed(f"at most {MOST_INVITED} secrets", "more")
    except MalformedMls as error:
        raise MlsRefused(error.subject, error.expected, error.got, error.place) from None
