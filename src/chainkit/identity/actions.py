"""The actions of an identity update, without their signers (XIP-46)."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.identity.identifiers import MemberIdentifier


@dataclass(frozen=True, slots=True)
class CreateInbox:
    """Creates the inbox, whose first member and recovery identifier is ``owner``."""

    owner: MemberIdentifier
    """A wallet or a passkey."""
    nonce: int
    """A uint64: one owner can create several inboxes."""


@dataclass(frozen=True, slots=True)
class AddAssociation:
    """Adds a member; an existing one and the new one sign."""

    member: MemberIdentifier


@dataclass(frozen=True, slots=True)
class RevokeAssociation:
    """Removes a member, and the installations it added; the recovery identifier signs."""

    member: MemberIdentifier


@dataclass(frozen=True, slots=True)
class ChangeRecovery:
    """Hands the right to revoke to another identifier, which need not sign or be a member."""

    recovery: MemberIdentifier
    """A wallet or a passkey."""


Action = CreateInbox | AddAssociation | RevokeAssociation | ChangeRecovery
