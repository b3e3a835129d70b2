"""The lies of a node about its own log or the chain, and the reports that they must lead to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import unsigned_originator_envelope
from chainkit.protocol.originated_envelope import parse_originated, sign_originated
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey
from chainkit.types import message_sent
from support import publishes
from support.network.originator import MemoryLog, Originator
from support.network.simulation.chain import Block, ChainPayload

_NOBODY = SigningKey(b"\x7f" * 32)
"""A key that no node has."""

FIRST_NODE_ID = 100
"""Every registry has it; no liar of the tests is it."""

STRANGER = 0
"""The reader of whom nobody knows which node it is."""

PAGE = 4
"""Envelopes of a frame: small, so that much happens between frames."""


class Lie(StrEnum):
    """One kind of lie each."""

    OMITS = "omits"
    """Leaves an envelope out, for everybody."""
    OMITS_TO_ONE = "omits to one"
    REORDERS = "reorders"
    """Sends a later one first."""
    REPEATS = "repeats"
    """Sends envelopes twice: harmless, and no lie."""
    EQUIVOCATES = "equivocates"
    """Signs two under one id, and gives each to other readers."""
    SUBSTITUTES = "substitutes"
    """Signs two under one id, and gives one after the other to everybody."""
    GOES_BACK = "goes back"
    """Signs a time before the last one's."""
    FUTURE_DATES = "future-dates"
    FORGES_PAYERS = "forges payers"
    STEALS = "steals"
    """Originates what was paid to another node."""
    DEPENDS_ON_ITSELF = "depends on itself"
    DEPENDS_ON_NOTHING = "depends on nothing"
    """Originates what names an envelope of another node that does not exist."""
    STALLS = "stalls"
    """Answers nobody."""
    DRIPS = "drips"
    """Answers late."""
    FAILS = "fails"
    """Answers with errors."""
    MAKES_UP = "makes up"
    """Sends what nobody signed."""
    SERVES_THE_CHAIN = "serves the chain"
    """Sends what it signed as the chain's, in place of its own."""


class ChainLie(StrEnum):
    """One kind of lie each about the chain; only strangers are served the chain's payloads."""

    DOCTORS = "doctors the chain"
    """Signs another payload under one of the chain's places."""
    STAYS = "stays on a fork"
    """Serves on what a reorg took back."""


EXPECTED: Mapping[Lie, tuple[Misbehavior, Weight]] = {
    Lie.OMITS: (Misbehavior.OUT_OF_ORDER, Weight.CLAIMED),
    Lie.OMITS_TO_ONE: (Misbehavior.OUT_OF_ORDER, Weight.CLAIMED),
    Lie.REORDERS: (Misbehavior.OUT_OF_ORDER, Weight.CLAIMED),
    Lie.EQUIVOCATES: (Misbehavior.DUPLICATE_SEQUENCE_ID, Weight.PROVED),
    Lie.SUBSTITUTES: (Misbehavior.DUPLICATE_SEQUENCE_ID, Weight.PROVED),
    Lie.GOES_BACK: (Misbehavior.OUT_OF_ORDER, Weight.PROVED),
    Lie.FUTURE_DATES: (Misbehavior.OUT_OF_ORDER, Weight.PROVED),
    Lie.FORGES_PAYERS: (Misbehavior.INVALID_PAYLOAD, Weight.PROVED),
    Lie.STEALS: (Misbehavior.INVALID_PAYLOAD, Weight.PROVED),
    Lie.DEPENDS_ON_ITSELF: (Misbehavior.CAUSAL_ORDERING, Weight.PROVED),
    Lie.DEPENDS_ON_NOTHING: (Misbehavior.CAUSAL_ORDERING, Weight.CLAIMED),
    Lie.STALLS: (Misbehavior.UNRESPONSIVE_NODE, Weight.CLAIMED),
    Lie.DRIPS: (Misbehavior.SLOW_NODE, Weight.CLAIMED),
    Lie.FAILS: (Misbehavior.FAILED_REQUEST, Weight.CLAIMED),
    Lie.MAKES_UP: (Misbehavior.FAILED_REQUEST, Weight.CLAIMED),
    Lie.SERVES_THE_CHAIN: (Misbehavior.FAILED_REQUEST, Weight.CLAIMED),
}
"""The report that a lie must lead to, and what it is worth. A lie that is not here harms nobody."""

EXPECTED_OF_CHAIN: Mapping[ChainLie, tuple[Misbehavior, Weight]] = {
    each: (Misbehavior.BLOCKCHAIN_INCONSISTENCY, Weight.CLAIMED) for each in ChainLie
}
"""As EXPECTED. The bytes alone prove nothing: that takes the chain."""


@dataclass
class Liar:
    """How one node lies about its own log, or about the chain."""

    lie: Lie | ChainLie
    from_id: int = 3
    """The first sequence id that it lies about."""
    victims: Collection[int] = ()
    """Readers that get another answer than all others."""
    others: dict[int, bytes] = field(default_factory=dict)
    """The second envelope under an id."""
    first: dict[int, bytes] = field(default_factory=dict)
    """The first envelope under it."""
    arrived: set[bytes] = field(default_factory=set)
    """Envelopes of its own log that honest nodes got from it."""
    fork: Block | None = None
    """The head of a branch of the chain that a reorg took back, with payloads."""
    compares: bool = True
    """It answers comparisons of logs, which a node of another make does not."""
    is_told: bool = False
    """It has misled somebody: not every lie gets the chance to."""

    def reached(self, lacked: bool, page: Sequence[tuple[int, bytes]]) -> None:
        """Take note of what an honest reader got; ``lacked`` tells that it has neither the one
        that this node lies about nor a later one."""
        self.arrived.update(envelope for _, envelope in page)
        ids = [each for each, _ in page]
        if self.lie in (Lie.OMITS, Lie.OMITS_TO_ONE, Lie.REORDERS):
            is_first = bool(ids) and self.from_id < ids[0] and lacked
            self.is_told |= is_first or (ids != sorted(ids)) or self._skips(ids, lacked)
        elif self.lie in (Lie.EQUIVOCATES, Lie.SUBSTITUTES):
            both = {self.others.get(self.from_id), self.first.get(self.from_id)}
            self.is_told |= both <= self.arrived
        elif self.lie in EXPECTED:
            self.is_told |= self.from_id in ids

    def _skips(self, ids: Sequence[int], lacked: bool) -> bool:
        return lacked and self.from_id not in ids and any(each > self.from_id for each in ids)

    def holds_back(self, last_id: int) -> bool:
        """Whether a page that ends with an id has to wait for the next one."""
        return self.lie is Lie.REORDERS and last_id == self.from_id

    def sent(self, reader_id: int, envelopes: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """Return what a reader gets instead of a page of the log, as ids with envelopes."""
        rows = list(envelopes)
        is_victim = reader_id in self.victims
        if self.lie is Lie.OMITS or (self.lie is Lie.OMITS_TO_ONE and is_victim):
            rows = [row for row in rows if row[0] != self.from_id]
        elif self.lie is Lie.REORDERS:
            rows = _swapped(rows, self.from_id)
        elif self.lie is Lie.REPEATS:
            rows = [row for row in rows for _ in range(2)]
        elif self.lie is Lie.EQUIVOCATES and is_victim:
            rows = [(each, self.others.get(each, envelope)) for each, envelope in rows]
        elif self.lie is Lie.SUBSTITUTES:
            rows = [each for row in rows for each in (row, *self._other(row[0]))]
        elif self.lie is Lie.SERVES_THE_CHAIN:
            rows = [(each, self.others.get(each, envelope)) for each, envelope in rows]
        elif self.lie is Lie.MAKES_UP:
            rows = [(each, _signed_by_another(envelope)) for each, envelope in rows]
        return [envelope for _, envelope in rows]

    def of_chain(self, block: Block) -> Sequence[ChainPayload]:
        """Return the payloads that it serves as the chain's, when it sees a block as the head."""
        if self.lie is ChainLie.STAYS and self.fork is not None:
            return self.fork.payloads
        payloads = list(block.payloads)
        if self.lie is ChainLie.DOCTORS and len(payloads) >= self.from_id:
            payloads[self.from_id - 1] = _doctored(payloads[self.from_id - 1], self.from_id)
        return payloads

    def _other(self, sequence_id: int) -> list[tuple[int, bytes]]:
        return [(sequence_id, self.others[sequence_id])] if sequence_id in self.others else []


def page(
    log: MemoryLog, liar: Liar | None, reader_id: int, after_id: int
) -> tuple[list[bytes], int]:
    """Return a page of a log behind an id as a reader gets it, and the id behind which the next is.

    It is an honest one without a liar.
    """
    rows: list[tuple[int, bytes]] = []
    last_id = after_id
    while len(rows) < PAGE and (held := log.after(last_id)) is not None:
        rows.append((held.sequence_id, held.envelope))
        last_id = held.sequence_id
    if liar is None:
        return [envelope for _, envelope in rows], last_id
    if rows and liar.holds_back(last_id):
        rows, last_id = rows[:-1], last_id - 1
    return liar.sent(reader_id, rows), last_id


def signed(
    signs: Originator,
    liar: Liar | None,
    sequence_id: int,
    seconds: float,
    seen: Mapping[int, int] | None = None,
) -> bytes:
    """Return the next envelope of a node, which lies where its liar begins.

    Its time is so many seconds after the begin of all tests' time; ``seen`` are ids that it
    depends on.
    """
    lie = liar.lie if liar and sequence_id == liar.from_id else None
    payload: bytes | None = None
    if lie is Lie.GOES_BACK:
        seconds -= 3600
    elif lie is Lie.FUTURE_DATES:
        seconds += 3600
    elif lie is Lie.FORGES_PAYERS:
        payload = publishes.paid(publishes.group_message(), signs.node_id)
        payload = _with_bad_v(payload)
    elif lie is Lie.STEALS:
        payload = publishes.paid(publishes.group_message(), signs.node_id + 1)
    elif lie is Lie.DEPENDS_ON_ITSELF:
        seen = {signs.node_id: sequence_id}
    elif lie is Lie.DEPENDS_ON_NOTHING:
        seen = {FIRST_NODE_ID: 10**6}
    elif lie in (Lie.EQUIVOCATES, Lie.SUBSTITUTES) and liar:
        seen = {}
        other = signs.signed(sequence_id, seconds, seen={signs.node_id: 1})
        liar.others[sequence_id] = other
        liar.first[sequence_id] = signs.signed(sequence_id, seconds)
    elif lie is Lie.SERVES_THE_CHAIN and liar:
        paid = publishes.paid(publishes.group_message(), signs.node_id)
        liar.others[sequence_id] = Originator(1, signs.key).signed(sequence_id, seconds, paid)
    return signs.signed(sequence_id, seconds, payload, seen)


def _doctored(payload: ChainPayload, sequence_id: int) -> ChainPayload:
    """Return a payload that nobody sent in the transaction that it names."""
    event = message_sent(publishes.GROUP_ID, publishes.group_message(b"doctored"), sequence_id)
    return ChainPayload(unsigned_originator_envelope(event, 0), payload.transaction_hash)


def _with_bad_v(payer_envelope: bytes) -> bytes:
    """Return a PayerEnvelope whose signature recovers to nobody: there is no such V."""
    message = envelopes_pb2.PayerEnvelope.FromString(payer_envelope)
    message.payer_signature.bytes = message.payer_signature.bytes[:-1] + b"\4"
    return message.SerializeToString()


def _signed_by_another(envelope: bytes) -> bytes:
    unsigned = parse_originated(envelope).unsigned_originator_envelope
    return sign_originated(unsigned, _NOBODY)


def _swapped(rows: list[tuple[int, bytes]], sequence_id: int) -> list[tuple[int, bytes]]:
    for place in range(len(rows) - 1):
        if rows[place][0] == sequence_id:
            rows[place : place + 2] = [rows[place + 1], rows[place]]
    return rows
