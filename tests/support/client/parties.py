"""Members of MLS groups, each with the state that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chainkit_client.mls.engine import (
    ApplicationReceived,
    CommitReceived,
    GroupView,
    Installation,
    KeyPackage,
    MlsEngine,
    Staged,
)
from chainkit_client.mls.node_engine import NodeEngine

GROUP_ID = bytes(range(32))
DATA = b"authenticated data"


def child_pid(engine: NodeEngine) -> int | None:
    """The process id of an engine's running child, None where there is none."""
    child = engine._child
    return child.pid if child is not None and child.is_alive else None


@dataclass
class Party:
    """An installation in one group."""

    engine: MlsEngine
    installation: Installation
    state: bytes = b""

    @property
    def view(self) -> GroupView:
        return self.engine.view(self.state)

    @property
    def leaf(self) -> int:
        return self.view.own_leaf

    def send(self, plaintext: bytes, data: bytes = DATA) -> bytes:
        """Encrypt a message, and keep the state that used up its key."""
        encrypted = self.engine.encrypt(self.state, plaintext, data)
        self.state = encrypted.state
        return encrypted.message

    def read(self, message: bytes) -> ApplicationReceived:
        """Decrypt a message of another, and keep the state."""
        received = self.engine.receive(self.state, message)
        assert isinstance(received, ApplicationReceived)
        self.state = received.state
        return received

    def apply(self, message: bytes) -> CommitReceived:
        """Apply a commit of another, and keep the state."""
        received = self.engine.receive(self.state, message)
        assert isinstance(received, CommitReceived)
        self.state = received.state
        return received

    def commit(self, staged: Staged, others: Iterable[Party] = ()) -> bytes:
        """Accept a commit of its own, also in the name of others."""
        self.state = staged.state
        for other in others:
            other.apply(staged.message)
        return staged.message

    def update(self, others: Iterable[Party] = ()) -> bytes:
        """Commit new keys."""
        return self.commit(self.engine.update(self.state, DATA), others)

    def remove(self, leaves: Sequence[int], others: Iterable[Party] = ()) -> bytes:
        """Commit removals."""
        return self.commit(self.engine.remove(self.state, leaves, DATA), others)

    def invite(
        self, engine: MlsEngine, names: Iterable[bytes], others: Iterable[Party] = ()
    ) -> list[Party]:
        """Add installations with these names, which join at once; the others apply the commit."""
        invited = [
            (each := engine.new_installation(name), engine.new_key_package(each)) for name in names
        ]
        staged = self.engine.add(self.state, [package.public for _, package in invited], DATA)
        self.commit(staged, others)
        return [joined(engine, each, package, staged) for each, package in invited]


def joined(
    engine: MlsEngine, installation: Installation, package: KeyPackage, staged: Staged
) -> Party:
    """Return a party that a staged commit's welcome brings into the group."""
    assert staged.welcome is not None
    return Party(engine, installation, engine.join(installation, package, staged.welcome))


def founder(engine: MlsEngine, name: bytes = b"alice", group_id: bytes = GROUP_ID) -> Party:
    """Return the only member of a new group."""
    installation = engine.new_installation(name)
    return Party(engine, installation, engine.create(installation, group_id))


def group_of(engine: MlsEngine, *names: bytes) -> list[Party]:
    """Return the members of a new group, the founder first, all in epoch 1."""
    first = founder(engine, names[0])
    return [first, *first.invite(engine, names[1:])]
