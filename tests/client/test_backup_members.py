"""A backup among members of a group: it reads, and nobody follows what it commits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainkit_client.mls.engine import Installation, MlsRefused
from chainkit_client.mls.node_engine import NodeEngine
from support.client.parties import DATA, Party, group_of, joined


def backup_of(engine: NodeEngine, name: bytes) -> Installation:
    return replace(engine.new_installation(name), is_backup=True)


def with_backup(engine: NodeEngine) -> tuple[Party, Party, Party]:
    alice, bob = group_of(engine, b"alice", b"bob")
    own = backup_of(engine, b"alice")
    package = engine.new_key_package(own)
    assert engine.describe_key_package(package.public).is_backup
    staged = engine.add(alice.state, [package.public], DATA)
    alice.commit(staged, [bob])
    return alice, bob, joined(engine, own, package, staged)


def test_add__a_backup__is_known_as_one_to_all_and_reads(engine: NodeEngine) -> None:
    alice, bob, backup = with_backup(engine)

    for each in (alice, bob, backup):
        assert [member.is_backup for member in each.view.members] == [False, False, True]
    assert backup.read(bob.send(b"for all")).plaintext == b"for all"
    alice.update([bob, backup])
    assert bob.read(backup.send(b"an answer")).sender.is_backup
    assert not alice.read(bob.send(b"words")).sender.is_backup


@pytest.mark.conforms("H25")
def test_receive__commit_of_a_backup__is_refused_by_all(engine: NodeEngine) -> None:
    alice, bob, backup = with_backup(engine)
    commits = [
        engine.update(backup.state, DATA).message,
        engine.remove(backup.state, [alice.leaf], DATA).message,
        engine.add(
            backup.state, [engine.new_key_package(engine.new_installation(b"eve")).public], DATA
        ).message,
    ]

    for each in (alice, bob):
        for commit in commits:
            with pytest.raises(MlsRefused, match="no commit of a backup"):
                engine.receive(each.state, commit)
    bob.update([alice, backup])
    assert backup.read(alice.send(b"still one group")).plaintext == b"still one group"
