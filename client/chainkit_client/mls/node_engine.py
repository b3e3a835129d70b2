"""The MLS engine: ts-mls, in a child Node.js process that keeps nothing between two calls.

Bytes of others are bounded before they reach the child. A refusal of bytes is final. A killed child
is replaced during the call; a child that hangs fails the call, and the next call starts another
child.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from Crypto.Signature import eddsa

from chainkit.errors import ChainkitError, ConfigurationError, InvalidSignature, MalformedMls
from chainkit.protocol.mls.key_package import check_key_package, parse_key_package
from chainkit.protocol.payer_envelope import MOST_PUBLISHED_LENGTH
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.mls.child import Child, ChildEnded, ChildLimits
from chainkit_client.mls.engine import (
    PAST_EPOCHS,
    ApplicationReceived,
    CommitReceived,
    Encrypted,
    EngineDied,
    EngineFailed,
    EpochAhead,
    GroupView,
    Installation,
    KeyPackage,
    KeyUsed,
    Member,
    MlsRefused,
    OwnCommit,
    Received,
    Staged,
    StateBroken,
)
from chainkit_client.mls.frames import decode_fields, number, read_number
from chainkit_client.mls.program import check_program, find_node
from chainkit_client.mls.welcome_bounds import check_welcome

MOST_MESSAGE_BYTES: Final = 4 << 20
"""The longest message, commit or welcome, by the limit of envelopes."""
MOST_KEY_PACKAGE_BYTES: Final = 64 << 10
MOST_CREDENTIAL_BYTES: Final = 1024
MOST_GROUP_ID_BYTES: Final = 64
MOST_PLAINTEXT_BYTES: Final = MOST_PUBLISHED_LENGTH - (64 << 10)
"""The longest plaintext with authenticated data, which leaves room for the rest of a message."""
MOST_CHANGES: Final = 100
"""Members that one commit adds or removes; MOST_PROPOSALS in client/mls_engine/rules.mjs."""
LONGEST_LIFETIME_SECONDS: Final = 400 * 86_400
"""The bound for an added key package, which RFC 9420 §7.3 asks for."""

_KEY_PACKAGE_HEAD: Final = b"\0\1\0\5"
"""MLSMessage of version 1, with a KeyPackage (RFC 9420 §6)."""
_OWN_LIFETIME_SECONDS: Final = 90 * 86_400
_BACKUP_LIFETIME_SECONDS: Final = LONGEST_LIFETIME_SECONDS - 86_400
_CLOCK_SKEW_SECONDS: Final = 3600
_SEED_LENGTH: Final = 32
_MEMBER_FIELDS: Final = 4
_REFUSALS: Final[dict[bytes, type[MlsRefused] | type[StateBroken]]] = {
    b"refused": MlsRefused,
    b"ahead": EpochAhead,
    b"own": OwnCommit,
    b"broken": StateBroken,
}


def _seconds() -> int:
    return int(time.time())


@dataclass(frozen=True, slots=True)
class _Request:
    id: bytes
    now: bytes
    call: tuple[bytes, ...] = field(repr=False)

    @property
    def fields(self) -> tuple[bytes, ...]:
        return self.id, self.now, *self.call


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request that was sent, and whose answer is not read yet."""

    request: _Request
    child: Child


class NodeEngine:
    """An ``MlsEngine``. Threads may share one engine; their calls take turns.

    ``cipher_suite`` is for new groups and key packages: 3 (ChaCha20-Poly1305), or 1 (AES-128-GCM);
    the engine joins groups of both suites. ``now`` returns seconds since 1970, and dates key
    packages only.
    """

    def __init__(
        self,
        *,
        cipher_suite: int = 3,
        past_epochs: int = PAST_EPOCHS,
        limits: ChildLimits | None = None,
        now: Callable[[], int] = _seconds,
        node: Path | None = None,
    ) -> None:
        """Keep the settings; the first call starts the child. Raises ConfigurationError."""
        if cipher_suite not in (1, 3):
            raise ConfigurationError("cipher suite", "1 or 3", cipher_suite)
        if past_epochs < 0:
            raise ConfigurationError("past epochs", "0 or more", past_epochs)
        self._cipher_suite = cipher_suite
        self._past_epochs = past_epochs
        self._limits = limits or ChildLimits()
        self._now = now
        self._node = node
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._owner = 0
        self._asked = 0
        self._begun: _Begun | None = None
        """A call that the child computes already."""

    def __enter__(self) -> NodeEngine:
        """Return the engine; the end of the block closes the child."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the child."""
        self.close()

    def close(self) -> None:
        """End the child. A later call starts another."""
        with self._lock:
            if self._child is not None and self._owner == os.getpid():
                self._child.end()
            self._child = self._begun = None

    def new_installation(self, credential: bytes) -> Installation:
        """Make a signature key. Raises MlsRefused for a credential over MOST_CREDENTIAL_BYTES."""
        _check_size("credential", credential, MOST_CREDENTIAL_BYTES)
        seed = secrets.token_bytes(_SEED_LENGTH)
        key = eddsa.import_private_key(seed).public_key()
        return Installation(credential, key.export_key(format="raw"), seed)

    def new_key_package(self, installation: Installation) -> KeyPackage:
        """Make a key package with new keys, valid for 90 days, or for 399 if it is a backup's."""
        now = self._now()
        seconds = _BACKUP_LIFETIME_SECONDS if installation.is_backup else _OWN_LIFETIME_SECONDS
        public, secret = self._call(
            b"newKeyPackage",
            number(self._cipher_suite),
            installation.credential,
            installation.public_key,
            installation.secret,
            number(now - _CLOCK_SKEW_SECONDS),
            number(now + seconds),
            number(int(installation.is_backup)),
            returns=2,
        )
        return KeyPackage(public, secret)

    def describe_key_package(self, public: bytes) -> Member:
        """Check a key package, and return its member, with leaf -1.

        Raises MlsRefused where the key package is malformed, not signed by its member, not valid
        now, or valid for longer than LONGEST_LIFETIME_SECONDS.
        """
        _check_size("key package", public, MOST_KEY_PACKAGE_BYTES)
        if not public.startswith(_KEY_PACKAGE_HEAD):
            raise MlsRefused("key package", "an MLSMessage with a KeyPackage", "another")
        try:
            package = parse_key_package(public.removeprefix(_KEY_PACKAGE_HEAD))
            check_key_package(package, self._now() * NANOSECONDS_PER_SECOND)
        except (MalformedMls, InvalidSignature) as error:
            raise MlsRefused(error.subject, error.expected, error.got, error.place) from None
        _check_size("credential", package.credential, MOST_CREDENTIAL_BYTES)
        lifetime = package.not_after - package.not_before
        if lifetime > LONGEST_LIFETIME_SECONDS:
            expected = f"a lifetime of at most {LONGEST_LIFETIME_SECONDS} s"
            raise MlsRefused("key package", expected, lifetime)
        return Member(-1, package.credential, package.installation_key, package.is_backup)

    def create(self, installation: Installation, group_id: bytes) -> bytes:
        """Return the state of a new group with one member, in epoch 0."""
        _check_size("group id", group_id, MOST_GROUP_ID_BYTES)
        package = self.new_key_package(installation)
        (state,) = self._call(
            b"create", package.public, package.secret, installation.secret, group_id, returns=1
        )
        return state

    def join(self, installation: Installation, key_package: KeyPackage, welcome: bytes) -> bytes:
        """Return the state of a group that a welcome opens to a key package."""
        _check_size("welcome", welcome, MOST_MESSAGE_BYTES)
        check_welcome(welcome, key_package.public)
        (state,) = self._call(
            b"join",
            key_package.public,
            key_package.secret,
            installation.secret,
            welcome,
            returns=1,
        )
        return state

    def view(self, state: bytes) -> GroupView:
        """Return the public part of a state."""
        (view,) = self._call(b"view", state, returns=1)
        return _view(view)

    def add(self, state: bytes, key_packages: Sequence[bytes], authenticated_data: bytes) -> Staged:
        """Commit the addition of members; each key package is checked as it is described.

        Raises MlsRefused for more than MOST_CHANGES members, and for groups of over 1,024 members.
        """
        _check_changes("addition", key_packages)
        for each in key_packages:
            self.describe_key_package(each)
        return self._stage(b"add", state, authenticated_data, *key_packages)

    def remove(self, state: bytes, leaves: Sequence[int], authenticated_data: bytes) -> Staged:
        """Commit the removal of at most MOST_CHANGES members; nobody removes itself."""
        _check_changes("removal", leaves)
        return self._stage(b"remove", state, authenticated_data, *map(number, leaves))

    def update(self, state: bytes, authenticated_data: bytes) -> Staged:
        """Commit new keys of this installation."""
        return self._stage(b"update", state, authenticated_data)

    def encrypt(self, state: bytes, plaintext: bytes, authenticated_data: bytes) -> Encrypted:
        """Encrypt an application message in the state's epoch.

        Raises MlsRefused for more than MOST_PLAINTEXT_BYTES of plaintext and authenticated data.
        """
        _check_size("plaintext", plaintext + authenticated_data, MOST_PLAINTEXT_BYTES)
        message, after = self._call(b"encrypt", state, plaintext, authenticated_data, returns=2)
        return Encrypted(message, after)

    def receive(self, state: bytes, message: bytes) -> Received:
        """Decrypt a message, or apply a commit, of another member."""
        _check_size("message", message, MOST_MESSAGE_BYTES)
        kind, *fields = self._call(b"receive", state, message)
        if kind == b"application" and len(fields) == 8:
            *sender, epoch, authenticated_data, plaintext, after = fields
            return ApplicationReceived(
                _member(sender), read_number(epoch), authenticated_data, plaintext, after
            )
        if kind == b"commit" and len(fields) == 9:
            *sender, authenticated_data, added, removed, view, after = fields
            return CommitReceived(
                _member(sender),
                authenticated_data,
                _members(added),
                _members(removed),
                _view(view),
                after,
            )
        raise _unexpected()

    def begin_receive(self, state: bytes, message: bytes) -> None:
        """Let the child decrypt a message while the caller does something else."""
        with self._lock, suppress(ChainkitError):
            if self._begun is None and len(message) <= MOST_MESSAGE_BYTES:
                request, child = self._request(b"receive", (state, message)), self._running_child()
                child.begin(request.fields)
                self._begun = _Begun(request, child)

    def _stage(self, name: bytes, state: bytes, data: bytes, *arguments: bytes) -> Staged:
        _check_size("authenticated data", data, MOST_PLAINTEXT_BYTES)
        message, welcome, after = self._call(name, state, data, *arguments, returns=3)
        _check_size("commit", message, MOST_MESSAGE_BYTES)
        _check_size("welcome", welcome, MOST_MESSAGE_BYTES)
        return Staged(message, welcome or None, after)

    def _call(self, name: bytes, *arguments: bytes, returns: int | None = None) -> list[bytes]:
        word, fields = self._ask(name, arguments)
        if word == b"used" and len(fields) == 1:
            raise KeyUsed(int(fields[0]))
        if word in _REFUSALS and len(fields) == 1:
            why = fields[0].decode(errors="replace")
            raise _REFUSALS[word]("MLS", None, f"{name.decode()}: {why}")
        if word != b"done" or returns not in (None, len(fields)):
            raise _unexpected()
        return fields

    def _ask(self, name: bytes, arguments: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
        with self._lock:
            request = self._request(name, arguments)
            begun = self._take_begun()
            is_begun = begun is not None and begun.request.call == request.call
            if begun is not None and not is_begun:
                # Read the announced request's answer first; a child that fails is replaced below.
                with suppress(EngineFailed):
                    begun.child.finish()
            try:
                if begun is not None and is_begun:
                    request = begun.request
                    answer = begun.child.finish()
                else:
                    answer = self._running_child().ask(request.fields)
            except ChildEnded:
                # The child was killed, or out of memory. A call depends only on its arguments, so
                # another child can answer the call. A call that kills both children fails.
                child = self._running_child()
                try:
                    answer = child.ask(request.fields)
                except ChildEnded as error:
                    raise EngineDied(error.subject, error.expected, error.got) from error
            if len(answer) < 2 or answer[0] != request.id:
                self._running_child().kill()
                raise _unexpected()
            return answer[1], answer[2:]

    def _request(self, name: bytes, arguments: Sequence[bytes]) -> _Request:
        self._asked += 1
        call = number(self._past_epochs), name, *arguments
        return _Request(number(self._asked), number(self._now()), call)

    def _take_begun(self) -> _Begun | None:
        # A forked process does not wait for the answer to its parent's request.
        begun = self._begun if self._owner == os.getpid() else None
        self._begun = None
        return begun

    def _running_child(self) -> Child:
        if self._child is not None and self._owner != os.getpid():
            # A forked process has the pipes, too; the child belongs to the process that started it.
            self._child.forget()
            self._child = None
        if self._child is not None and not self._child.is_alive:
            self._child.kill()
            self._child = None
        if self._child is None:
            node = self._node or find_node()
            self._child = Child(node, check_program(), self._limits)
            self._owner = os.getpid()
        return self._child


def _check_size(subject: str, data: bytes, most: int) -> None:
    if len(data) > most:
        raise MlsRefused(subject, f"at most {most} bytes", len(data))


def _check_changes(subject: str, members: Sequence[object]) -> None:
    if not 0 < len(members) <= MOST_CHANGES:
        raise MlsRefused(subject, f"1 to {MOST_CHANGES} members", len(members))


def _unexpected() -> EngineFailed:
    return EngineFailed("MLS engine", "the answer to its request", "another")


def _member(fields: Sequence[bytes]) -> Member:
    leaf, credential, public_key, is_backup = fields
    return Member(read_number(leaf), credential, public_key, read_number(is_backup) == 1)


def _members(content: bytes) -> tuple[Member, ...]:
    fields = decode_fields(content)
    if len(fields) % _MEMBER_FIELDS:
        raise _unexpected()
    starts = range(0, len(fields), _MEMBER_FIELDS)
    return tuple(_member(fields[at : at + _MEMBER_FIELDS]) for at in starts)


def _view(content: bytes) -> GroupView:
    fields = decode_fields(content)
    if len(fields) != 6:
        raise _unexpected()
    group_id, epoch, own_leaf, is_member, authenticator, members = fields
    return GroupView(
        group_id,
        read_number(epoch),
        read_number(own_leaf),
        _members(members),
        authenticator,
        read_number(is_member) == 1,
    )
