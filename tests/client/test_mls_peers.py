"""Members of other implementations in groups with ours: mls-rs, and rine's core.

Both offer cipher suite 1 only. Both commit in the clear, which our members refuse, so ours do not
follow theirs; both follow ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import mls_rs_uniffi as mls_rs
import pytest
import rine_mls

from chainkit.protocol.mls.message import WireFormat, parse_message_header
from chainkit_client.mls.engine import MlsRefused
from chainkit_client.mls.node_engine import NodeEngine
from support.client.parties import DATA, GROUP_ID, Party, founder, group_of


class Peer(Protocol):
    """A member of another implementation, as far as the tests ask it."""

    def offer(self) -> bytes: ...
    def found(self) -> None: ...
    def join(self, welcome: bytes) -> None: ...
    def add(self, key_package: bytes) -> tuple[bytes, bytes]: ...
    def send(self, plaintext: bytes) -> bytes: ...
    def read(self, message: bytes) -> bytes: ...
    def apply(self, commit: bytes) -> None: ...
    def is_removed_by(self, commit: bytes) -> bool: ...


class MlsRsPeer:
    """Amazon's mls-rs."""

    def __init__(self, folder: Path) -> None:
        keys = mls_rs.generate_signature_keypair(mls_rs.CipherSuite.CURVE25519_AES128)
        self.client = mls_rs.Client(b"peer", keys, mls_rs.client_config_default())

    def offer(self) -> bytes:
        return bytes(self.client.generate_key_package_message().to_bytes())

    def found(self) -> None:
        self.group = self.client.create_group(GROUP_ID)

    def join(self, welcome: bytes) -> None:
        self.group = self.client.join_group(None, mls_rs.Message.from_bytes(welcome)).group

    def add(self, key_package: bytes) -> tuple[bytes, bytes]:
        made = self.group.add_members([mls_rs.Message.from_bytes(key_package)])
        self.group.process_incoming_message(made.commit_message)
        return bytes(made.commit_message.to_bytes()), bytes(made.welcome_message.to_bytes())

    def send(self, plaintext: bytes) -> bytes:
        return bytes(self.group.encrypt_application_message(plaintext).to_bytes())

    def read(self, message: bytes) -> bytes:
        received = self.group.process_incoming_message(mls_rs.Message.from_bytes(message))
        assert received.is_application_message()
        return bytes(received.data)

    def apply(self, commit: bytes) -> None:
        received = self.group.process_incoming_message(mls_rs.Message.from_bytes(commit))
        assert received.is_commit()
        assert received.effect.is_new_epoch()

    def is_removed_by(self, commit: bytes) -> bool:
        received = self.group.process_incoming_message(mls_rs.Message.from_bytes(commit))
        return bool(received.effect.is_removed())


class RinePeer:
    """The core of rine; one byte leads each of its application messages."""

    TAG = bytes([rine_mls.APP_MESSAGE_TAG])

    def __init__(self, folder: Path) -> None:
        suite = rine_mls.CIPHER_SUITE_CLASSICAL
        self.client = rine_mls.MlsClient(str(folder), secrets.token_bytes(32), suite)

    def offer(self) -> bytes:
        return self.client.generate_key_package()

    def found(self) -> None:
        self.group = self.client.create_group(GROUP_ID)

    def join(self, welcome: bytes) -> None:
        self.group = self.client.join_from_welcome(welcome)

    def add(self, key_package: bytes) -> tuple[bytes, bytes]:
        made = self.group.add_member(key_package)
        [welcome] = made.welcomes
        return made.commit, welcome

    def send(self, plaintext: bytes) -> bytes:
        return self.group.encrypt_application_message(plaintext).removeprefix(self.TAG)

    def read(self, message: bytes) -> bytes:
        return self.group.decrypt_application_message(self.TAG + message).envelope

    def apply(self, commit: bytes) -> None:
        before = self.group.epoch()
        assert self.group.apply_commit(commit) == before + 1

    def is_removed_by(self, commit: bytes) -> bool:
        self.group.apply_commit(commit)
        return not self.group.is_active()


@pytest.fixture(params=[MlsRsPeer, RinePeer])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Peer:
    make: Callable[[Path], Peer] = request.param
    return make(tmp_path)


@pytest.fixture
def engine(engine_of_suite_1: NodeEngine) -> NodeEngine:
    return engine_of_suite_1


def test_peer__added_to_a_group_of_ours__reads_and_is_read(engine: NodeEngine, peer: Peer) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    staged = engine.add(alice.state, [peer.offer()], DATA)
    alice.commit(staged, [bob])
    assert staged.welcome is not None
    peer.join(staged.welcome)

    assert peer.read(alice.send(b"from alice")) == b"from alice"
    assert peer.read(bob.send(b"from bob", b"other data")) == b"from bob"
    message = peer.send(b"from the peer")
    for each in (alice, bob):
        received = each.read(message)
        assert (received.plaintext, received.sender.leaf) == (b"from the peer", 2)


def test_peer__in_a_group_of_ours__follows_each_kind_of_commit_and_its_own_removal(
    engine: NodeEngine, peer: Peer
) -> None:
    alice, bob = group_of(engine, b"alice", b"bob")
    staged = engine.add(alice.state, [peer.offer()], DATA)
    alice.commit(staged, [bob])
    assert staged.welcome is not None
    peer.join(staged.welcome)

    peer.apply(alice.update([bob]))
    peer.apply(bob.update([alice]))
    newcomer = engine.new_installation(b"carol")
    package = engine.new_key_package(newcomer)
    staged = engine.add(bob.state, [package.public], DATA)
    peer.apply(bob.commit(staged, [alice]))
    assert staged.welcome is not None
    carol = Party(engine, newcomer, engine.join(newcomer, package, staged.welcome))
    peer.apply(alice.remove([bob.leaf], [carol]))
    peer.apply(carol.update([alice]))
    assert peer.read(carol.send(b"still one group")) == b"still one group"
    message = peer.send(b"it is")
    assert [each.read(message).plaintext for each in (alice, carol)] == [b"it is"] * 2

    [leaf] = [each.leaf for each in alice.view.members if each.leaf not in (alice.leaf, carol.leaf)]
    assert peer.is_removed_by(alice.remove([leaf], [carol]))
    with pytest.raises((mls_rs.Error, rine_mls.RineMlsError)):
        peer.read(carol.send(b"without the peer"))


def test_ours__added_to_a_group_of_a_peer__reads_is_read_and_is_followed(
    engine: NodeEngine, peer: Peer
) -> None:
    peer.found()
    installation = engine.new_installation(b"bob")
    package = engine.new_key_package(installation)
    _, welcome = peer.add(package.public)
    bob = Party(engine, installation, engine.join(installation, package, welcome))

    assert bob.view.group_id == GROUP_ID
    assert bob.view.members[1].credential == b"bob"
    assert bob.read(peer.send(b"from the peer")).plaintext == b"from the peer"
    assert peer.read(bob.send(b"from bob")) == b"from bob"
    peer.apply(bob.update())
    [carol] = bob.invite(engine, [b"carol"])
    assert carol.read(bob.send(b"between ours")).plaintext == b"between ours"


def test_backup__among_peers__is_added_by_theirs_and_joins_where_they_are(
    engine: NodeEngine, peer: Peer
) -> None:
    own = replace(engine.new_installation(b"bob"), is_backup=True)
    package = engine.new_key_package(own)
    peer.found()
    _, welcome = peer.add(package.public)
    backup = Party(engine, own, engine.join(own, package, welcome))
    assert backup.view.members[backup.leaf].is_backup
    assert backup.read(peer.send(b"from the peer")).plaintext == b"from the peer"


def test_commit__of_a_peer_in_the_clear__is_refused(engine: NodeEngine, peer: Peer) -> None:
    alice = founder(engine)
    staged = engine.add(alice.state, [peer.offer()], DATA)
    alice.commit(staged)
    assert staged.welcome is not None
    peer.join(staged.welcome)
    newcomer = engine.new_key_package(engine.new_installation(b"carol"))
    commit, _ = peer.add(newcomer.public)

    assert parse_message_header(commit).wire_format is WireFormat.PUBLIC_MESSAGE
    with pytest.raises(MlsRefused, match="expected mls_private_message"):
        engine.receive(alice.state, commit)
