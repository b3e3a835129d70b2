"""A message that the child decrypts while its caller does something else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from chainkit_client.mls.child import ChildLimits
from chainkit_client.mls.engine import EngineFailed, MlsRefused
from chainkit_client.mls.node_engine import MOST_MESSAGE_BYTES, NodeEngine
from support.client.parties import child_pid, group_of


@pytest.fixture
def own_engine() -> Iterator[NodeEngine]:
    with NodeEngine() as running:
        yield running


def test_receive__was_begun__gives_what_it_gives_otherwise(own_engine: NodeEngine) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    first, second = alice.send(b"first"), alice.send(b"second")

    after = own_engine.receive(bob.state, first).state
    expected = own_engine.receive(after, second)
    own_engine.begin_receive(after, second)

    assert own_engine.receive(after, second) == expected


@pytest.mark.parametrize("size", [1, 200_000])
def test_call__behind_another_one_that_was_begun__is_answered_itself(
    own_engine: NodeEngine, size: int
) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    # A pipe takes 64 KiB: the rest of the begun request is sent when its answer is read.
    first, second = alice.send(bytes(size)), alice.send(b"second")

    own_engine.begin_receive(bob.state, first)
    assert own_engine.view(bob.state).epoch == bob.view.epoch
    own_engine.begin_receive(bob.state, first)
    received = own_engine.receive(bob.state, second)

    assert getattr(received, "plaintext", None) == b"second"
    assert bob.read(first).plaintext == bytes(size)


def test_receive__was_begun_and_is_refused__says_why_when_it_is_asked_for(
    own_engine: NodeEngine,
) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    message = alice.send(b"words")
    bob.read(message)

    own_engine.begin_receive(bob.state, message)
    own_engine.begin_receive(bob.state, bytes(MOST_MESSAGE_BYTES + 1))

    assert own_engine.view(bob.state).epoch == bob.view.epoch
    with pytest.raises(MlsRefused):
        own_engine.receive(bob.state, message)


def test_receive__child_is_killed_after_it_was_begun__another_one_answers(
    own_engine: NodeEngine,
) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    message = alice.send(b"words")
    first = child_pid(own_engine)
    assert first is not None
    os.kill(first, signal.SIGSTOP)

    own_engine.begin_receive(bob.state, message)
    os.kill(first, signal.SIGKILL)

    assert bob.read(message).plaintext == b"words"
    assert child_pid(own_engine) not in (None, first)


def test_receive__child_hangs_after_it_was_begun__fails_after_its_time() -> None:
    with NodeEngine(limits=replace(ChildLimits(), seconds=0.5)) as engine:
        alice, bob = group_of(engine, b"alice", b"bob")
        message = alice.send(b"words")
        hanging = child_pid(engine)
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)

        engine.begin_receive(bob.state, message)
        with pytest.raises(EngineFailed, match=r"an answer within 0\.5 s, got none"):
            engine.receive(bob.state, message)

        assert child_pid(engine) != hanging
        assert bob.read(message).plaintext == b"words"


def test_begin__in_a_process_that_is_forked_then__is_forgotten_there(
    own_engine: NodeEngine,
) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    message = alice.send(b"words")
    own_engine.begin_receive(bob.state, message)
    reader, writer = os.pipe()
    if (forked := os.fork()) == 0:
        os.write(writer, bob.read(message).plaintext)
        own_engine.close()
        os._exit(0)
    os.waitpid(forked, 0)
    there = os.read(reader, 100)
    os.close(reader)
    os.close(writer)

    assert (there, bob.read(message).plaintext) == (b"words", b"words")


def test_close__a_message_was_begun__the_next_call_begins_anew(own_engine: NodeEngine) -> None:
    alice, bob = group_of(own_engine, b"alice", b"bob")
    message = alice.send(b"words")

    own_engine.begin_receive(bob.state, message)
    own_engine.close()

    assert bob.read(message).plaintext == b"words"
