"""The members of an inbox after an update, and all that later updates are judged by (XIP-46)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from chainkit.identity.identifiers import MemberIdentifier


class Member(NamedTuple):
    """A member of an inbox."""

    identifier: MemberIdentifier
    added_by: MemberIdentifier | None
    """The existing member that signed for this member; None for the first."""
    client_timestamp_ns: int | None
    """Nanoseconds since 1970, by the clock of the adding client; None for the first member."""
    chain_id: int | None
    """The only chain on which a contract wallet may sign; None for every other member."""


@dataclass(frozen=True, slots=True)
class AssociationState:
    """An inbox between two updates. Nothing is changed in place: an update gives another state."""

    inbox_id: bytes
    """32 bytes."""
    members: Mapping[MemberIdentifier, Member]
    recovery: MemberIdentifier
    """The only identifier that may revoke; it need not be a member."""
    seen_signatures: frozenset[bytes]
    """32 bytes each: ``Signed.fingerprints`` of every accepted update, which only grow."""
    roles: Mapping[bytes, MemberIdentifier | None]
    """The one role of each key that ever was a member; None for a legacy key, which never was.

    A key is stored as its 20, 32 or, in the shorter form of SEC 1, 33 bytes.
    """


class Changes(NamedTuple):
    """The members that an accepted update associated with its inbox, and revoked.

    The address log consists of the wallets and passkeys. A member that was added and revoked in
    the same update is in neither list.
    """

    associated: tuple[MemberIdentifier, ...] = ()
    """Wallets and passkeys."""
    revoked: tuple[MemberIdentifier, ...] = ()
    installed: tuple[MemberIdentifier, ...] = ()
    """Installations: nobody is looked up by them."""
    uninstalled: tuple[MemberIdentifier, ...] = ()


class Accepted(NamedTuple):
    """The outcome of an update that breaks no rule."""

    state: AssociationState
    changes: Changes
