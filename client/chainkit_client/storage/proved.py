"""Installations that were seen in the inbox which they name: as tags, since MLS hides members."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from chainkit_client.storage import schema
from chainkit_client.storage.sealing import Seal

_TABLE: Final = schema.proved_members
_TAG: Final = "proved_members.tag"


class ProvedMembers:
    """The proved members as a transaction sees them at first."""

    def __init__(self, connection: Connection, seal: Seal) -> None:
        """Read all tags: a client knows few members."""
        self._seal = seal
        self._tags = frozenset(connection.scalars(select(_TABLE.c.tag)))

    def has(self, public_key: bytes, account: str) -> bool:
        """Return whether an installation was seen in the inbox that it names."""
        return _tag(self._seal, public_key, account) in self._tags


def write_proved(
    connection: Connection, seal: Seal, public_key: bytes, account: str, is_proved: bool
) -> None:
    """Write whether an installation is in the inbox that it names."""
    tag = _tag(seal, public_key, account)
    if is_proved:
        connection.execute(insert(_TABLE).values(tag=tag).on_conflict_do_nothing())
    else:
        connection.execute(delete(_TABLE).where(_TABLE.c.tag == tag))


def _tag(seal: Seal, public_key: bytes, account: str) -> bytes:
    return seal.tag(public_key + account.encode(), _TAG)
