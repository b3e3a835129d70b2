"""The interface of an MLS engine: takes state bytes and arguments, returns new state bytes.

An engine keeps nothing between two calls, so a caller may repeat a call, drop a result, or go back
to an earlier state. States contain secrets: a state's repr is empty, and states go into no log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from chainkit.errors import ChainkitError, MalformedData

PAST_EPOCHS: Final = 3
"""Epochs before the current one whose messages can still be read (R2)."""


class MlsRefused(MalformedData):
    """The bytes cannot be used with this state, now or later."""


class EpochAhead(MlsRefused):
    """The message's epoch is later than the state's: a later state may read the message."""


class NotInvited(MlsRefused):
    """A welcome that is for no given key package: anybody may publish one."""


class KeyUsed(MlsRefused):
    """A member encrypted a message with a key that was used before, so nobody can read it."""

    def __init__(self, leaf: int) -> None:
        """Take the member's leaf in the message's epoch."""
        super().__init__("MLS receive", "a key that was not used before", f"one of leaf {leaf}")
        self.leaf = leaf


class OwnCommit(MlsRefused):
    """The installation made the commit, and this state lacks it: another copy of the state has it.

    The installation signed the commit, and no copy of the state but that one can follow it.
    """


class EngineFailed(ChainkitError):
    """The engine ended, or took too long: the same call may succeed later."""


class EngineDied(EngineFailed):
    """Two engines ended one after the other at the same call, which each had to itself."""


class StateBroken(ChainkitError):
    """The state, or the secret of a key package, is damaged: no message is at fault."""


@dataclass(frozen=True, slots=True)
class Installation:
    """One device of a user, as its groups know it."""

    credential: bytes
    """The identity of the basic credential."""
    public_key: bytes
    """32 bytes: the Ed25519 key that signs in all groups; the installation's id."""
    secret: bytes = field(repr=False)
    """32 bytes: the Ed25519 seed of the public key."""
    is_backup: bool = False
    """Whether its key packages say that it only reads (XIP-31)."""


@dataclass(frozen=True, slots=True)
class KeyPackage:
    """An offer to be added to a group, for one use."""

    public: bytes
    """An MLSMessage for other members: four bytes before the KeyPackage that a node stores."""
    secret: bytes = field(repr=False)
    """The engine's private keys, which joining needs."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, by its leaf."""

    leaf: int
    credential: bytes
    public_key: bytes
    is_backup: bool = False
    """Whether its leaf says that it only reads: what it says to people counts for nothing."""


@dataclass(frozen=True, slots=True)
class GroupView:
    """The public part of a state."""

    group_id: bytes
    epoch: int
    own_leaf: int
    members: tuple[Member, ...]
    """The members in the order of leaves."""
    epoch_authenticator: bytes
    """32 bytes that are equal for two members only if all commits so far are the same."""
    is_member: bool = True
    """False once a commit removed this installation; the epoch is then its last one."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A commit that is built and not accepted yet: the earlier state stays until then."""

    message: bytes
    """An MLSMessage: a PrivateMessage with the commit."""
    welcome: bytes | None
    """An MLSMessage for all added members, None where the commit adds nobody."""
    state: bytes = field(repr=False)
    """The state once the commit is accepted."""


@dataclass(frozen=True, slots=True)
class Encrypted:
    """An application message, and the state after its key was used."""

    message: bytes
    """An MLSMessage: a PrivateMessage."""
    state: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ApplicationReceived:
    """A message of another member, or of this one that another copy of the state encrypted."""

    sender: Member
    epoch: int
    authenticated_data: bytes
    plaintext: bytes = field(repr=False)
    state: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CommitReceived:
    """A commit of another member, applied."""

    sender: Member
    authenticated_data: bytes
    added: tuple[Member, ...]
    removed: tuple[Member, ...]
    view: GroupView
    """The group in the epoch that the commit makes."""
    state: bytes = field(repr=False)


Received: TypeAlias = ApplicationReceived | CommitReceived


class MlsEngine(Protocol):
    """Each method raises EngineFailed, StateBroken, and MlsRefused for bytes that do not fit."""

    def new_installation(self, credential: bytes) -> Installation:
        """Make a signature key."""

    def new_key_package(self, installation: Installation) -> KeyPackage:
        """Make a key package with new keys; one of a backup has the role, and a longer lifetime."""

    def describe_key_package(self, public: bytes) -> Member:
        """Check a key package, and return its member, with leaf -1."""

    def create(self, installation: Installation, group_id: bytes) -> bytes:
        """Return the state of a new group with one member, in epoch 0."""

    def join(self, installation: Installation, key_package: KeyPackage, welcome: bytes) -> bytes:
        """Return the state of a group that a welcome opens to a key package."""

    def view(self, state: bytes) -> GroupView:
        """Return the public part of a state."""

    def add(self, state: bytes, key_packages: Sequence[bytes], authenticated_data: bytes) -> Staged:
        """Commit the addition of members, by their public key packages."""

    def remove(self, state: bytes, leaves: Sequence[int], authenticated_data: bytes) -> Staged:
        """Commit the removal of members."""

    def update(self, state: bytes, authenticated_data: bytes) -> Staged:
        """Commit new keys of this installation."""

    def encrypt(self, state: bytes, plaintext: bytes, authenticated_data: bytes) -> Encrypted:
        """Encrypt an application message in the state's epoch."""

    def receive(self, state: bytes, message: bytes) -> Received:
        """Decrypt a message, or apply a commit, of another member.

        A message of this member opens where its key was not used in this state: another copy of
        the state encrypted it. Raises KeyUsed, and OwnCommit.
        A commit of another epoch, a commit that names proposals by reference (R19) and a proposal
        without a commit are refused; a message may be of one of the last ``PAST_EPOCHS`` epochs.
        Raises EpochAhead where the epoch is later than the state's.
        """

    def begin_receive(self, state: bytes, message: bytes) -> None:
        """Announce the next ``receive`` with the same arguments, to compute it meanwhile.

        Raises nothing; any other call may follow as well.
        """
