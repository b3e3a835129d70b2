"""Payloads of the chain that come again: verified once for each node and each of its keys."""

from __future__ import annotations

import pytest

from chainkit.errors import InvalidSignature
from chainkit_client.reading import known
from chainkit_client.reading.known import KnownReads
from chainkit_client.reading.verified import Keys, read_envelope
from support.client.served import KEYS, NODE, PEER, of_chain


def test_read__payload_of_the_chain_comes_again__is_not_verified_again() -> None:
    reads = KnownReads()
    first = reads.read(of_chain(3), 100, KEYS)

    assert first == read_envelope(of_chain(3), 100, KEYS)
    assert reads.read(of_chain(3), 100, KEYS) is first
    assert reads.read(NODE.signed(2), 100, KEYS) is not reads.read(NODE.signed(2), 100, KEYS)


def test_read__known_from_one_node__another_one_must_vouch_for_it_itself() -> None:
    reads = KnownReads()
    reads.read(of_chain(3), 100, KEYS)

    with pytest.raises(InvalidSignature):
        reads.read(of_chain(3), 200, KEYS)


def test_read__the_node_has_another_key_now__is_verified_again() -> None:
    reads = KnownReads()
    reads.read(of_chain(3), 100, KEYS)

    with pytest.raises(InvalidSignature):
        reads.read(of_chain(3), 100, Keys({100: PEER.key.public_key}))


def test_read__more_or_longer_ones_than_are_kept__are_verified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known, "MOST_READS", 2)
    reads = KnownReads()
    first, second = (reads.read(of_chain(number), 100, KEYS) for number in (1, 2))
    reads.read(of_chain(3), 100, KEYS)

    assert reads.read(of_chain(2), 100, KEYS) is second
    assert reads.read(of_chain(1), 100, KEYS) is not first
    monkeypatch.setattr(known, "MOST_BYTES", 10)
    assert reads.read(of_chain(9), 100, KEYS) is not reads.read(of_chain(9), 100, KEYS)
