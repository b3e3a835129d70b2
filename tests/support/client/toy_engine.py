"""An MLS engine without cryptography: epochs, members, used-up keys, and the refusals of MLS.

An epoch's secret is the hash of all commits up to it, and stands in for all its keys. A message
carries a hash over it, so that only those with the same history read it, once for each key. Nothing
is hidden from a reader of the bytes.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chainkit.errors import MalformedMls
from chainkit.protocol.mls.message import parse_message_header
from chainkit.protocol.mls.presentation import Reader
from chainkit_client.mls.engine import (
    PAST_EPOCHS,
    ApplicationReceived,
    CommitReceived,
    Encrypted,
    GroupView,
    Installation,
    KeyPackage,
    KeyUsed,
    Member,
    MlsRefused,
    NotInvited,
    OwnCommit,
    Received,
    Staged,
)
from support import mls


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(len(each).to_bytes(4, "big") + each for each in parts)).digest()


def _written(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _refused(expected: str, got: object) -> MlsRefused:
    return MlsRefused("toy message", expected, got)


@dataclass(frozen=True)
class _Epoch:
    number: int
    secret: str
    used: tuple[tuple[int, int], ...] = ()
    """Keys of senders that were used to read: leaf and generation."""


@dataclass(frozen=True)
class _State:
    group_id: bytes
    own: bytes
    members: tuple[Member, ...]
    current: _Epoch
    past: tuple[_Epoch, ...] = ()
    sent: int = 0
    """Own keys of this epoch that were used."""

    @property
    def own_leaf(self) -> int:
        return next((each.leaf for each in self.members if each.public_key == self.own), -1)

    def epoch(self, number: int) -> _Epoch:
        for each in (self.current, *self.past):
            if each.number == number:
                return each
        raise _refused(f"an epoch up to {self.current.number} whose keys are kept", number)

    def encoded(self) -> bytes:
        epochs = [[each.number, each.secret, each.used] for each in (self.current, *self.past)]
        members = [
            [each.leaf, each.credential.hex(), each.public_key.hex()] for each in self.members
        ]
        return _written([self.group_id.hex(), self.own.hex(), members, epochs, self.sent])


def _state(data: bytes) -> _State:
    group_id, own, members, epochs, sent = json.loads(data)
    current, *past = (
        _Epoch(number, secret, tuple((leaf, one) for leaf, one in used))
        for number, secret, used in epochs
    )
    return _State(
        bytes.fromhex(group_id),
        bytes.fromhex(own),
        tuple(Member(leaf, bytes.fromhex(one), bytes.fromhex(key)) for leaf, one, key in members),
        current,
        tuple(past),
        sent,
    )


@dataclass
class ToyEngine:
    """Its chance is handed in; two engines with one seed make the same keys and commits."""

    random: random.Random = field(default_factory=random.SystemRandom)
    used: dict[tuple[str, int, int], bytes] = field(default_factory=dict, repr=False)
    """Each key that was used to send, and for what: to be shared by all engines of a test."""

    def new_installation(self, credential: bytes) -> Installation:
        secret = self.random.randbytes(32)
        return Installation(credential, _hash(b"public", secret), secret)

    def new_key_package(self, installation: Installation) -> KeyPackage:
        secret = self.random.randbytes(32)
        offer = [installation.credential.hex(), installation.public_key.hex(), _hash(secret).hex()]
        return KeyPackage(_written(offer), secret)

    def describe_key_package(self, public: bytes) -> Member:
        credential, key, _ = _offer(public)
        return Member(-1, credential, key)

    def create(self, installation: Installation, group_id: bytes) -> bytes:
        member = Member(0, installation.credential, installation.public_key)
        secret = _hash(b"create", self.random.randbytes(32)).hex()
        return _State(group_id, member.public_key, (member,), _Epoch(0, secret)).encoded()

    def join(self, installation: Installation, key_package: KeyPackage, welcome: bytes) -> bytes:
        try:
            offers, data = json.loads(welcome)
        except ValueError as error:
            raise NotInvited("toy MLS", "a welcome", "other bytes") from error
        if _hash(key_package.secret).hex() not in offers:
            raise NotInvited("toy MLS", "a welcome to this key package", "one to others")
        state = replace(_state(bytes.fromhex(data)), own=installation.public_key)
        return state.encoded()

    def view(self, state: bytes) -> GroupView:
        found = _state(state)
        return GroupView(
            found.group_id,
            found.current.number,
            found.own_leaf,
            found.members,
            _hash(b"authenticator", found.current.secret.encode()),
            is_member=found.own_leaf >= 0,
        )

    def add(self, state: bytes, key_packages: Sequence[bytes], authenticated_data: bytes) -> Staged:
        offers = [_offer(each) for each in key_packages]
        added = [[credential.hex(), key.hex()] for credential, key, _ in offers]
        nonces = [nonce for _, _, nonce in offers]
        return self._staged(state, added, [], authenticated_data, nonces)

    def remove(self, state: bytes, leaves: Sequence[int], authenticated_data: bytes) -> Staged:
        return self._staged(state, [], list(leaves), authenticated_data)

    def update(self, state: bytes, authenticated_data: bytes) -> Staged:
        return self._staged(state, [], [], authenticated_data)

    def encrypt(self, state: bytes, plaintext: bytes, authenticated_data: bytes) -> Encrypted:
        before = _state(state)
        content = {"leaf": before.own_leaf, "key": before.sent, "plaintext": plaintext.hex()}
        message = self._framed(before, mls.APPLICATION, content, authenticated_data)
        key = before.current.secret, before.own_leaf, before.sent
        assert self.used.setdefault(key, message) == message, "one key for two messages"
        return Encrypted(message, replace(before, sent=before.sent + 1).encoded())

    def receive(self, state: bytes, message: bytes) -> Received:
        before = _state(state)
        header = parse_message_header(message)
        if header.group_id != before.group_id:
            raise _refused("one of this group", "one of another")
        if before.own_leaf < 0:
            raise _refused("a member", "one that was removed")
        epoch = before.epoch(header.epoch)
        content = _content(message, epoch)
        sender = next((each for each in before.members if each.leaf == content["leaf"]), None)
        is_own = content["leaf"] == before.own_leaf and epoch is before.current
        if is_own and header.content_type == mls.COMMIT:
            raise OwnCommit("toy message", "a commit of another member", "an own one")
        if header.content_type == mls.COMMIT:
            if epoch is not before.current or sender is None:
                raise _refused(f"a commit of epoch {before.current.number}", header.epoch)
            return self._committed(before, message, content, sender, header.authenticated_data)
        key = content["leaf"], content["key"]
        if key in epoch.used or (is_own and content["key"] < before.sent):
            raise KeyUsed(content["leaf"])
        if is_own:
            before = replace(before, sent=content["key"] + 1)
        after = replace(epoch, used=(*epoch.used, key))
        epochs = [after if each is epoch else each for each in (before.current, *before.past)]
        return ApplicationReceived(
            sender or Member(content["leaf"], b"", b"gone"),
            header.epoch,
            header.authenticated_data,
            bytes.fromhex(content["plaintext"]),
            replace(before, current=epochs[0], past=tuple(epochs[1:])).encoded(),
        )

    def begin_receive(self, state: bytes, message: bytes) -> None:
        """Nothing is computed before it is asked for."""

    def _staged(
        self,
        state: bytes,
        added: list[list[str]],
        removed: list[int],
        authenticated_data: bytes,
        nonces: Sequence[str] = (),
    ) -> Staged:
        before = _state(state)
        if before.own_leaf in removed:
            raise _refused("the removal of others", "of itself")
        content = {
            "leaf": before.own_leaf,
            "add": added,
            "remove": removed,
            "chance": self.random.randbytes(8).hex(),
        }
        message = self._framed(before, mls.COMMIT, content, authenticated_data)
        after = _after(before, message, content)
        # A newcomer has no keys of the epochs before.
        welcome = _written([list(nonces), replace(after, past=()).encoded().hex()])
        return Staged(message, welcome if added else None, after.encoded())

    def _committed(
        self,
        before: _State,
        message: bytes,
        content: dict[str, Any],
        sender: Member,
        authenticated_data: bytes,
    ) -> CommitReceived:
        after = _after(before, message, content)
        is_out = after.own_leaf < 0
        # A member that is removed cannot follow, and stays in the last epoch that it was in.
        data = (replace(before, members=after.members) if is_out else after).encoded()
        was, now = set(before.members), set(after.members)
        return CommitReceived(
            sender,
            authenticated_data,
            tuple(each for each in after.members if each not in was),
            tuple(each for each in before.members if each not in now),
            self.view(data),
            data,
        )

    @staticmethod
    def _framed(
        state: _State, content_type: int, content: dict[str, Any], authenticated_data: bytes
    ) -> bytes:
        return framed(
            state.group_id,
            state.current.number,
            state.current.secret,
            content_type,
            content,
            authenticated_data,
        )


def framed(
    group_id: bytes,
    epoch: int,
    secret: str,
    content_type: int,
    content: Any,
    authenticated_data: bytes,
) -> bytes:
    """A message of the toy, in the frame of an MLS message."""
    head = b"\0\1\0\2" + mls.vector(group_id) + epoch.to_bytes(8, "big") + bytes([content_type])
    head += mls.vector(authenticated_data)
    body = _written(content)
    return head + mls.vector(_hash(secret.encode(), head, body)) + mls.vector(body)


def _content(message: bytes, epoch: _Epoch) -> dict[str, Any]:
    reader = Reader(message, "toy message")
    reader.integer(4), reader.vector(), reader.integer(8), reader.integer(1), reader.vector()
    head = message[: reader.position]
    proof, body = reader.vector(), reader.vector()
    if proof != _hash(epoch.secret.encode(), head, body):
        raise _refused("one of a member with the same history", "another")
    content: dict[str, Any] = json.loads(body)
    return content


def _after(before: _State, message: bytes, content: dict[str, Any]) -> _State:
    members = [each for each in before.members if each.leaf not in content["remove"]]
    if len(members) + len(content["remove"]) != len(before.members):
        raise _refused("the removal of members", content["remove"])
    for credential, key in content["add"]:
        if any(each.public_key.hex() == key for each in members):
            raise _refused("an installation that is not a member", key)
        taken = {each.leaf for each in members}
        leaf = next(each for each in range(len(taken) + 1) if each not in taken)
        members.append(Member(leaf, bytes.fromhex(credential), bytes.fromhex(key)))
    secret = _hash(before.current.secret.encode(), message).hex()
    return replace(
        before,
        members=tuple(sorted(members, key=lambda each: each.leaf)),
        current=_Epoch(before.current.number + 1, secret),
        past=(before.current, *before.past)[:PAST_EPOCHS],
        sent=0,
    )


def _offer(public: bytes) -> tuple[bytes, bytes, str]:
    try:
        credential, key, nonce = json.loads(public)
        return bytes.fromhex(credential), bytes.fromhex(key), nonce
    except (ValueError, MalformedMls) as error:
        raise MlsRefused("key package", "one", "other bytes") from error
