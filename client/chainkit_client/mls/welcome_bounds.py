"""Looks at a welcome before the engine does: whether it is for a key package, and not too long.

Anybody may publish a welcome for an installation. One of 4 MiB holds 1.4 million empty secrets,
each of which becomes an object of the engine (RFC 9420 §12.4.3.1).
"""

from __future__ import annotations

import hashlib
from typing import Final

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.message import MLS_VERSION
from chainkit.protocol.mls.presentation import Reader, written_vector
from chainkit_client.mls.engine import MlsRefused, NotInvited

MOST_INVITED: Final = 1024
"""Members whom one welcome invites: the most of a group."""

_WIRE_FORMAT: Final = 3
"""``WireFormat`` mls_welcome (RFC 9420 §6)."""
_LABEL: Final = b"MLS 1.0 KeyPackage Reference"
_MESSAGE_HEAD_BYTES: Final = 4
"""Version and wire format, before the KeyPackage of an MLSMessage."""


def check_welcome(welcome: bytes, key_package: bytes) -> None:
    """Check that an MLSMessage is a welcome to a public key package, with secrets for not too many.

    Raises NotInvited where none of its first MOST_INVITED secrets is for the key package, and
    MlsRefused where it has more secrets.
    """
    try:
        references = _references(welcome)
    except MalformedMls as error:
        raise NotInvited(error.subject, error.expected, error.got, error.place) from None
    if _reference(key_package) not in references[:MOST_INVITED]:
        raise NotInvited("welcome", "one to a key package", "one to others")
    if len(references) > MOST_INVITED:
        raise MlsRefused("welcome", f"at most {MOST_INVITED} secrets", "more")


def _references(welcome: bytes) -> list[bytes]:
    """Return the references of a welcome's key packages, one more than MOST_INVITED at most."""
    reader = Reader(welcome, "welcome")
    head = reader.integer(2), reader.integer(2)
    if head != (MLS_VERSION, _WIRE_FORMAT):
        raise reader.malformed("an MLSMessage with a Welcome", f"0x{welcome[:4].hex()}")
    reader.integer(2)
    secrets = reader.items()
    found: list[bytes] = []
    while not secrets.is_at_end and len(found) <= MOST_INVITED:
        found.append(secrets.vector())
        # The two parts of the encrypted secrets.
        secrets.vector()
        secrets.vector()
    return found


def _reference(key_package: bytes) -> bytes:
    """Return the reference of an MLSMessage with a KeyPackage (RFC 9420 §5.2).

    Both cipher suites of the engine hash with SHA-256.
    """
    value = written_vector(key_package[_MESSAGE_HEAD_BYTES:])
    return hashlib.sha256(written_vector(_LABEL) + value).digest()
