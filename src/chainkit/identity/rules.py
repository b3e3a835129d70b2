"""The rules of XIP-46, action by action, on a copy that is discarded where a rule is broken.

Signers are taken as named: ``judge`` accepts an outcome only after it checked the signatures. The
work for an update grows with its actions and the inbox's members, never with their product.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from chainkit.identity.actions import (
    AddAssociation,
    ChangeRecovery,
    CreateInbox,
    RevokeAssociation,
)
from chainkit.identity.curves import compressed_p256
from chainkit.identity.identifiers import MemberIdentifier, MemberKind, derive_inbox_id
from chainkit.identity.refusals import Refusal, refused
from chainkit.identity.signed import KINDS_OF_MEMBER, SignatureKind, Signed
from chainkit.identity.state import Accepted, AssociationState, Changes, Member
from chainkit.identity.update import IdentityUpdate, SignedAction, place_of

LEGACY_NONCE: Final = 0
"""Nonce of the inboxes that a legacy key may sign for."""


def apply(state: AssociationState | None, update: IdentityUpdate) -> Accepted:
    """Return the state after an update whose signers are as named; None means no inbox yet.

    All actions apply, in order, or none does. Raises RefusedUpdate for the first action that breaks
    a rule.
    """
    inbox = Inbox(state)
    inbox.apply(update)
    return Accepted(inbox.state(), _changes(state.members if state else {}, inbox))


def _changes(before: Mapping[MemberIdentifier, Member], inbox: Inbox) -> Changes:
    added = [each for each in inbox.touched if each in inbox.members and each not in before]
    revoked = [each for each in inbox.touched if each in before and each not in inbox.members]
    return Changes(*map(_public, (added, revoked)), *map(_installations, (added, revoked)))


def _public(members: Iterable[MemberIdentifier]) -> tuple[MemberIdentifier, ...]:
    return tuple(each for each in members if each.kind is not MemberKind.INSTALLATION)


def _installations(members: Iterable[MemberIdentifier]) -> tuple[MemberIdentifier, ...]:
    return tuple(each for each in members if each.kind is MemberKind.INSTALLATION)


class Inbox:
    """An association state while updates change it. After a refusal the object is unusable."""

    def __init__(self, state: AssociationState | None) -> None:
        """Begin with a copy of a state, or without an inbox."""
        self.inbox_id = state.inbox_id if state else None
        self.members = dict(state.members) if state else {}
        self.recovery = state.recovery if state else None
        self.seen = set(state.seen_signatures) if state else set()
        self.roles = dict(state.roles) if state else {}
        self.touched: dict[MemberIdentifier, None] = {}
        """Identifiers that were added or removed, in order."""
        self._installations: defaultdict[MemberIdentifier, set[MemberIdentifier]]
        self._installations = defaultdict(set)
        """Installations by the member that added each."""
        for member in self.members.values():
            self._note_parent(member)
        self._place = ""
        self._is_legacy_used = False

    def state(self) -> AssociationState:
        """Return the inbox as a state. Raises RefusedUpdate where no update created the inbox."""
        if self.inbox_id is None or self.recovery is None:
            raise refused(Refusal.NOT_CREATED, "a created inbox", "none")
        seen = frozenset(self.seen)
        return AssociationState(self.inbox_id, self.members, self.recovery, seen, self.roles)

    def apply(self, update: IdentityUpdate) -> None:
        """Apply all actions of an update. Raises RefusedUpdate for the first that breaks a rule."""
        if self.inbox_id not in (None, update.inbox_id):
            got = f"one of {update.inbox_id.hex()}"
            raise refused(Refusal.WRONG_INBOX, "an update of the state's inbox", got)
        self._is_legacy_used = False
        for number, each in enumerate(update.actions, start=1):
            self._place = place_of(number)
            self._apply(each, update)
        for each in update.actions:
            for signed in each.signatures:
                self.seen |= signed.fingerprints

    def _apply(self, signed: SignedAction, update: IdentityUpdate) -> None:
        action, signatures = signed.action, signed.signatures
        if isinstance(action, CreateInbox):
            return self._create(action, signatures[0], update.inbox_id)
        if self.inbox_id is None:
            raise refused(Refusal.NOT_CREATED, "a created inbox", "none", self._place)
        self._check_unused(signatures)
        match action:
            case AddAssociation():
                existing, new = signatures
                self._add(action.member, existing, new, update.client_timestamp_ns)
            case RevokeAssociation():
                self._revoke(action.member, signatures[0])
            case ChangeRecovery():
                self._change_recovery(action.recovery, signatures[0])
        return None

    def _create(self, action: CreateInbox, signature: Signed, inbox_id: bytes) -> None:
        if self.inbox_id is not None:
            raise refused(Refusal.ALREADY_CREATED, "one creation", "a second", self._place)
        self._check_signer(signature, action.owner)
        if signature.kind is SignatureKind.LEGACY and action.nonce != LEGACY_NONCE:
            raise self._no_legacy(f"an inbox of nonce {action.nonce}")
        derived = derive_inbox_id(action.owner, action.nonce)
        if derived != inbox_id:
            raise refused(Refusal.WRONG_INBOX, derived.hex(), inbox_id.hex(), self._place)
        self.inbox_id, self.recovery = inbox_id, action.owner
        self._note_delegate(signature)
        self._put(Member(action.owner, None, None, signature.chain_id))

    def _add(
        self, member: MemberIdentifier, existing: Signed, new: Signed, timestamp_ns: int
    ) -> None:
        self._check_signer(new, member)
        if existing.signer == member:
            raise refused(Refusal.ADDS_ITSELF, "another existing member", member, self._place)
        self._check_legacy(member, existing, new)
        self._check_existing(existing)
        if member.kind is MemberKind.INSTALLATION is existing.signer.kind:
            got = "an installation by an installation"
            raise refused(Refusal.MAY_NOT_ADD, "an installation by a wallet", got, self._place)
        # A holder of the same address on another chain must not move the member there.
        self._check_chain(new)
        for signature in (existing, new):
            self._note_delegate(signature)
        self._put(Member(member, existing.signer, timestamp_ns, new.chain_id))

    def _revoke(self, member: MemberIdentifier, signature: Signed) -> None:
        self._check_recovery(signature)
        if member not in self.members:
            raise refused(Refusal.REVOKES_NO_MEMBER, "a member", member, self._place)
        self._remove(member)
        for installation in self._installations.pop(member, ()):
            self._remove(installation)

    def _change_recovery(self, recovery: MemberIdentifier, signature: Signed) -> None:
        self._check_recovery(signature)
        self._check_role(recovery)
        self.recovery = recovery

    def _check_unused(self, signatures: tuple[Signed, ...]) -> None:
        for signature in signatures:
            if not self.seen.isdisjoint(signature.fingerprints):
                got = f"one of {signature.signer} again"
                raise refused(Refusal.SIGNATURE_USED, "unused signatures", got, self._place)

    def _check_signer(self, signature: Signed, signer: MemberIdentifier) -> None:
        if signature.signer != signer:
            raise refused(Refusal.WRONG_SIGNER, signer, signature.signer, self._place)
        self._check_kind(signature)

    def _check_kind(self, signature: Signed) -> None:
        kind = signature.signer.kind
        if signature.kind not in KINDS_OF_MEMBER[kind]:
            expected, got = f"a signature that a {kind} makes", f"{signature.kind} signature"
            raise refused(Refusal.WRONG_SIGNATURE_KIND, expected, got, self._place)

    def _check_existing(self, signature: Signed) -> None:
        """Check that an addition is by a member, or by the recovery identifier itself."""
        self._check_kind(signature)
        if signature.signer in self.members:
            return self._check_chain(signature)
        if signature.signer != self.recovery:
            raise refused(Refusal.NOT_A_MEMBER, "a member", signature.signer, self._place)
        if signature.kind is SignatureKind.LEGACY:
            raise self._no_legacy("the recovery identifier, which is no member")
        return None

    def _check_recovery(self, signature: Signed) -> None:
        if signature.kind is SignatureKind.LEGACY:
            raise self._no_legacy("the recovery identifier")
        if signature.signer != self.recovery:
            got = signature.signer
            raise refused(Refusal.NOT_THE_RECOVERY, self.recovery, got, self._place)
        self._check_kind(signature)
        self._check_chain(signature)

    def _check_chain(self, signature: Signed) -> None:
        """Check that a signer is the contract, or the account without code, that was added."""
        member = self.members.get(signature.signer)
        if member is not None and member.chain_id != signature.chain_id:
            expected, got = _chain(member.chain_id), _chain(signature.chain_id)
            raise refused(Refusal.WRONG_CHAIN, expected, got, self._place)

    def _check_legacy(self, member: MemberIdentifier, existing: Signed, new: Signed) -> None:
        """Check that a legacy key adds one installation, in the inbox that its wallet created."""
        legacy = [each for each in (existing, new) if each.kind is SignatureKind.LEGACY]
        if not legacy:
            return
        # Today's clients hold the existing member to this rule, whichever signature is legacy.
        held = [each.signer for each in (existing, *legacy)]
        for signer in held:
            is_installation = signer.kind is MemberKind.INSTALLATION
            if not is_installation and derive_inbox_id(signer, LEGACY_NONCE) != self.inbox_id:
                raise self._no_legacy(f"an inbox that {signer} did not create with nonce 0")
        if existing.kind is SignatureKind.LEGACY:
            if member.kind is not MemberKind.INSTALLATION or self._is_legacy_used:
                raise self._no_legacy("another member than its one installation")
            self._is_legacy_used = True

    def _check_role(self, identifier: MemberIdentifier) -> bytes:
        """Return the role entry of a key among all roles. Raises RefusedUpdate for a second one."""
        key = _key_of(identifier)
        if self.roles.get(key, identifier) != identifier:
            raise refused(Refusal.SECOND_ROLE, "a key without a role", identifier, self._place)
        return key

    def _note_delegate(self, signature: Signed) -> None:
        if signature.delegate is None:
            return
        if self.roles.setdefault(signature.delegate.value, None) is not None:
            got = signature.delegate
            raise refused(Refusal.SECOND_ROLE, "a key without a role", got, self._place)

    def _put(self, member: Member) -> None:
        self.roles[self._check_role(member.identifier)] = member.identifier
        self._remove(member.identifier)
        self.members[member.identifier] = member
        self._note_parent(member)

    def _remove(self, identifier: MemberIdentifier) -> None:
        self.touched[identifier] = None
        member = self.members.pop(identifier, None)
        if member is not None and member.added_by is not None:
            self._installations[member.added_by].discard(identifier)

    def _note_parent(self, member: Member) -> None:
        if member.added_by is not None and member.identifier.kind is MemberKind.INSTALLATION:
            self._installations[member.added_by].add(member.identifier)

    def _no_legacy(self, got: str) -> Exception:
        expected = "a legacy key to sign for its own inbox, and once"
        return refused(Refusal.LEGACY_KEY, expected, got, self._place)


def _key_of(identifier: MemberIdentifier) -> bytes:
    """Return the key without its form: a P-256 key has two forms, which are the same key."""
    value = identifier.value
    return compressed_p256(value) if identifier.kind is MemberKind.PASSKEY else value


def _chain(chain_id: int | None) -> str:
    return "no contract wallet" if chain_id is None else f"chain {chain_id}"
