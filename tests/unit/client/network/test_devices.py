"""A person's devices by the updates of an inbox, and how some are revoked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from chainkit.identity.writing import Step, WalletSigner
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.refusals import PassedOn
from chainkit.types import Place
from chainkit_client.network import revoking
from chainkit_client.network.devices import Device, read_devices
from chainkit_client.network.inboxes import read_inbox
from chainkit_client.network.payloads import identity_payload
from chainkit_client.network.publisher import OutcomeUnknown
from chainkit_client.network.revoking import WrongWallet, revoke
from support import identity
from support.identity import AT_NS, Installation, Wallet

OWNER, OTHER = Wallet("owner"), Wallet("other")
LAPTOP, PHONE = Installation("laptop"), Installation("phone")
INBOX = identity.inbox_of(OWNER)
SECOND_NS = 10**9
"""Signed texts name the second: the same words again would be a replay."""


def payload(number: int, *steps: Step) -> bytes:
    update = identity.update(INBOX, *steps, at_ns=AT_NS + number * SECOND_NS)
    return identity_payload(INBOX, update, None)


UPDATES: dict[Place, bytes] = {
    (0, 1): payload(1, identity.create(OWNER), identity.add(LAPTOP, OWNER)),
    (0, 2): payload(2, identity.add(PHONE, OWNER)),
    (0, 3): payload(3, identity.revoke(PHONE, OTHER)),
}
"""The last one is of a wallet that may not revoke."""
REVOCATION = payload(4, identity.revoke(PHONE, OWNER))


def test_read_devices__one_was_revoked_and_added_again__has_the_last_word() -> None:
    laptop, phone = LAPTOP.public_key, PHONE.public_key
    both = [Device(laptop, AT_NS + 1 * SECOND_NS), Device(phone, AT_NS + 2 * SECOND_NS)]
    assert read_devices(INBOX, UPDATES) == both

    revoked = UPDATES | {(0, 4): REVOCATION}
    assert read_devices(INBOX, revoked) == [
        both[0],
        Device(phone, AT_NS + 2 * SECOND_NS, revoked_ns=AT_NS + 4 * SECOND_NS, place=(0, 4)),
    ]
    inbox = read_inbox(INBOX, revoked)
    assert inbox is not None
    assert (inbox.installations, inbox.revoked) == ((laptop,), {phone})

    again = revoked | {(0, 5): payload(5, identity.add(PHONE, OWNER))}
    assert read_devices(INBOX, again) == [both[0], Device(phone, AT_NS + 5 * SECOND_NS)]
    inbox = read_inbox(INBOX, again)
    assert inbox is not None
    assert (len(inbox.installations), inbox.revoked) == (2, frozenset())


class Network:
    """A chain that takes what is published, unless the answer is an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Exception | None = None) -> None:
        self.updates = dict(UPDATES)
        self.published: list[bytes] = []
        self.served = True
        self.nodes = [None]
        self.publisher = self
        self.takes = True
        self._answer = answer
        monkeypatch.setattr(revoking, "updates_of", self.updates_of)
        monkeypatch.setattr(revoking, "_PAUSE_SECONDS", 0)

    async def publish(self, client_envelope: bytes, first_sent_ns: int) -> None:
        self.published.append(client_envelope)
        if self.takes:
            self.updates[(0, 4)] = client_envelope
        if self._answer is not None:
            raise self._answer

    async def updates_of(self, session: object, inbox_id: bytes) -> dict[Place, bytes]:
        return dict(self.updates)

    def reader(self, topic: object, at_once: int) -> None:
        return None

    async def read(self, reader: None) -> SimpleNamespace:
        found = [
            SimpleNamespace(place=place, client=SimpleNamespace(client_envelope=data))
            for place, data in self.updates.items()
        ]
        return SimpleNamespace(accepted=found if self.served else [])

    def revoke(self, *keys: Installation, by: Wallet = OWNER, seconds: float = 60) -> bool:
        wanted = [each.public_key for each in keys]
        done = revoke(cast(Any, self), WalletSigner(by.key), INBOX, wanted, seconds)
        return asyncio.run(done)


def test_revoke__two_devices__is_one_update_behind_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Network(monkeypatch)

    assert network.revoke(LAPTOP, PHONE)

    [published] = network.published
    envelope = envelopes_pb2.ClientEnvelope.FromString(published)
    assert dict(envelope.aad.last_seen.node_id_to_sequence_id) == {0: 3}
    inbox = read_inbox(INBOX, network.updates)
    assert inbox is not None
    assert inbox.revoked == {LAPTOP.public_key, PHONE.public_key}
    # A second call publishes nothing.
    assert network.revoke(LAPTOP, PHONE)
    assert len(network.published) == 1


def test_revoke__by_a_wallet_that_is_not_the_recovery_one__publishes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Network(monkeypatch)

    with pytest.raises(WrongWallet) as raised:
        network.revoke(PHONE, by=OTHER)

    told = f"wallet: expected {OWNER.identifier}, the inbox's recovery identifier"
    assert str(raised.value).startswith(told)
    assert str(raised.value).endswith(f"got {OTHER.identifier}")
    assert network.published == []


def test_revoke__answer_is_lost_or_an_earlier_one_is_on_its_way__the_chain_says_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal = PassedOn(grpc.StatusCode.INVALID_ARGUMENT, "revoked identifier is no member")
    for answer in (OutcomeUnknown("publish", "an answer", "none"), refusal):
        assert Network(monkeypatch, answer).revoke(PHONE)


def test_revoke__gateway_refuses__raises_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = PassedOn(grpc.StatusCode.INVALID_ARGUMENT, "no balance")
    network = Network(monkeypatch, refusal)
    network.takes = False

    with pytest.raises(PassedOn, match="no balance"):
        network.revoke(PHONE, seconds=0)


def test_revoke__no_node_serves_it__is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch)
    network.served = False

    assert not network.revoke(PHONE, seconds=0)
