"""An originator's log as it signs it, honestly or not, and a log in memory that holds such ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chainkit.misbehavior.received_batch import as_held
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received
from chainkit.signatures import SigningKey
from chainkit_client.reading.held import MemoryLog as ClientLog
from support import publishes

SECOND_NS = 10**9
BEGIN_NS = 1_700_000_000 * SECOND_NS


@dataclass
class Originator:
    """Signs whatever it is told to."""

    node_id: int = 100
    key: SigningKey = field(default_factory=lambda: SigningKey(b"\3" * 32))

    def signed(
        self,
        sequence_id: int,
        seconds: float = 0.0,
        payload: bytes | None = None,
        seen: Mapping[int, int] | None = None,
        expiry: int | None = None,
    ) -> bytes:
        """An envelope whose time is so many seconds after the begin of all tests' time.

        ``payload`` is a PayerEnvelope; by default a message that depends on what was ``seen``.
        """
        if payload is None:
            payload = publishes.paid(publishes.group_message(seen=seen), self.node_id)
        time_ns = BEGIN_NS + round(seconds * SECOND_NS)
        stated = OriginatedEnvelope(self.node_id, sequence_id, time_ns, payload, expiry)
        return sign_originated(unsigned_originated(stated), self.key)

    def log(self, count: int, seconds: float = 1.0) -> list[bytes]:
        """An honest log: ids from 1, one every so many seconds."""
        return [self.signed(each, each * seconds) for each in range(1, count + 1)]

    def received(self, envelope: bytes) -> ReceivedEnvelope:
        """One of its envelopes as others read it."""
        return read_received(envelope, self.node_id, self.key.public_key)


class MemoryLog(ClientLog):
    """The envelopes that are held of one originator, in memory."""

    def __len__(self) -> int:
        return len(self._ids)

    def store(self, received: ReceivedEnvelope) -> None:
        """Store an envelope; its id must be free."""
        assert self.at(received.sequence_id) is None
        self.hold(as_held(received))

    def envelopes(self) -> list[bytes]:
        """The envelopes in the order of their ids."""
        return [self._held[each].envelope for each in self._ids]

    def ids(self) -> list[int]:
        """The ids, in order."""
        return list(self._ids)
