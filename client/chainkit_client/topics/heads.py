"""Compares topic heads with the held envelopes: finds missing envelopes, and lies of nodes.

A node's answer may leave an envelope out without a trace. The node's head has a hash over all its
envelopes. Where the hash differs from the held envelopes' hash, the node lists the entries of the
head, and the entries must give the hash. So each difference is found: the client asks for an
envelope that it lacks, and an envelope that the head lacks is evidence against the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.errors import MalformedAnswer
from chainkit.misbehavior.received_batch import HeldEnvelope
from chainkit.misbehavior.topic_evidence import TopicEvidence, contradiction
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.topic_heads import MOST_ENTRIES, Chain, Entry, TopicHead, read_topic_head
from chainkit.types import NANOSECONDS_PER_SECOND, Place
from chainkit_client.breach import Breach
from chainkit_client.reading.held import MemoryLogs
from chainkit_client.reading.verified import Keys

_LARGEST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SignedHead:
    """A head that its originator signed."""

    head: TopicHead
    data: bytes
    """The SignedTopicHead."""


@dataclass(frozen=True, slots=True)
class HeadTaken:
    """The outcome of a head."""

    signed: SignedHead
    is_same: bool
    """Whether the head has exactly the held envelopes. Where False, ask for its entries."""
    entries_after: int
    """The id behind which to list entries: head and held envelopes are the same up to this id."""
    breaches: tuple[Breach, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """The outcome of a head's entries."""

    missing: tuple[Place, ...] = ()
    """Envelopes that the node has originated, that have not expired, and that are not held."""
    expired: tuple[Place, ...] = ()
    """Expired envelopes that are not held: nobody serves these any more."""
    breaches: tuple[Breach, ...] = ()
    disputed: tuple[Place, ...] = ()
    """Held places in which the node has originated another envelope, by its head."""


class HeldHeads:
    """The heads of one topic; not for several threads."""

    def __init__(self, topic: bytes, logs: MemoryLogs) -> None:
        """Take the topic, and its held envelopes, to which the owner adds."""
        self._topic = topic
        self._logs = logs
        self._last: dict[int, SignedHead] = {}
        """The head of the highest id, by originator."""
        self._same: dict[int, SignedHead] = {}
        """The last head that had exactly the held envelopes, by originator."""
        self._lacked: set[Place] = set()
        """Held places that a head lacks, or in which it has another envelope."""
        self._expired: dict[int, dict[int, Entry]] = {}
        """Entries of expired envelopes that were never held, by originator and id."""
        self._promised: dict[int, dict[int, HeldEnvelope]] = {}
        """Answers to publishes that are neither held nor in a head, by originator and id."""

    def promise(self, originator_id: int, envelope: HeldEnvelope) -> None:
        """Take an envelope that its originator signed as the answer to a publish.

        Nobody may ever serve the envelope: it is evidence if a later head denies it.
        """
        self._promised.setdefault(originator_id, {})[envelope.sequence_id] = envelope

    def promised(self) -> list[Place]:
        """Return the places of promised envelopes that are neither held nor settled by a head."""
        return [
            (originator_id, each)
            for originator_id in self._promised
            for each in self._open(originator_id, _LARGEST_ID)
        ]

    def take(self, data: bytes, node_id: int, keys: Keys) -> HeadTaken:
        """Compare a node's SignedTopicHead with an earlier head, and with the held envelopes.

        Raises MalformedData where the head is no evidence.
        """
        signed = self._read(data, node_id, keys)
        breaches = self._contradictions(signed)
        if breaches:
            self._same.pop(node_id, None)
        base = self._base(signed)
        is_same = self._chain(base, self._ours(base, signed)) == signed.head.chain
        # A head that has what is held, and no more, denies what was promised.
        is_same = is_same and not self._open(node_id, signed.head.through_id)
        if is_same:
            self._same[node_id] = signed
        return HeadTaken(signed, is_same, _through(base), breaches)

    def expired(self) -> list[Place]:
        """Return the places of expired envelopes, by their nodes' heads, that are not held."""
        return sorted(
            (node_id, each)
            for node_id, entries in self._expired.items()
            for each in entries
            if self._logs.log(node_id).at(each) is None
        )

    def through(self, node_id: int) -> int | None:
        """Return the highest id that a node said it has given; None before its first head."""
        last = self._last.get(node_id)
        return None if last is None else last.head.through_id

    def listed(
        self, signed: SignedHead, entries: Sequence[Entry], after: int, now_ns: int
    ) -> Listed:
        """Compare a head's entries behind an id, which the node listed, with the held envelopes.

        ``after`` is 0, or the ``entries_after`` of the head; ``now_ns`` is the client's clock since
        1970. Raises MalformedData for entries that do not give the head's hash.
        """
        base = self._base(signed) if after else None
        theirs = [each for each in entries if each.sequence_id <= signed.head.through_id]
        if after != _through(base) or self._chain(base, theirs) != signed.head.chain:
            # The head may differ from what is held before ``after``: list all entries next time.
            self._same.pop(signed.head.originator_id, None)
            subject = f"entries of a head of node {signed.head.originator_id}"
            raise MalformedAnswer(subject, "those that give its hash", "others")
        ours = {each.sequence_id: each.digest for each in self._ours(base, signed)}
        now = now_ns // NANOSECONDS_PER_SECOND
        node_id = signed.head.originator_id
        absent = [each for each in theirs if each.sequence_id not in ours]
        expired = [each for each in absent if _is_expired(each, now)]
        self._expired.setdefault(node_id, {}).update({each.sequence_id: each for each in expired})
        gone = tuple((node_id, each.sequence_id) for each in expired)
        missing = tuple((node_id, each.sequence_id) for each in absent if each not in expired)
        digests = {each.sequence_id: each.digest for each in theirs}
        promised = self._open(node_id, signed.head.through_id)
        for number in promised:
            # Listed or denied: the head has settled the promise.
            del self._promised[node_id][number]
        denied = [each for number, each in promised.items() if digests.get(number) != each.digest]
        lacking = [
            held
            for number, digest in ours.items()
            if digests.get(number) != digest and (held := self._logs.log(node_id).at(number))
        ]
        places = {(node_id, each.sequence_id) for each in lacking}
        disputed = tuple(sorted(each for each in places if each[1] in digests))
        # Each head is other evidence of the same fact.
        new = [] if self._lacked >= places else lacking[:1]
        self._lacked |= places
        breaches = [self._omission(signed, base, theirs, each) for each in (*new, *denied)]
        return Listed(missing, gone, tuple(breaches), disputed)

    def _read(self, data: bytes, node_id: int, keys: Keys) -> SignedHead:
        subject = f"topic head of node {node_id}"
        if node_id not in keys.by_node:
            raise MalformedAnswer(subject, "a node of the registry", "another")
        head = read_topic_head(data, keys.by_node[node_id])
        if head.originator_id != node_id or head.topic != self._topic:
            got = f"originator {head.originator_id}, topic 0x{head.topic.hex()}"
            raise MalformedAnswer(subject, f"its own on topic 0x{self._topic.hex()}", got)
        return SignedHead(head, data)

    def _contradictions(self, signed: SignedHead) -> tuple[Breach, ...]:
        """Compare a head with the last one, and store the head of the higher id."""
        node_id = signed.head.originator_id
        last = self._last.setdefault(node_id, signed)
        earlier, later = sorted((last, signed), key=lambda each: each.head.through_id)
        self._last[node_id] = later
        reason = contradiction(earlier.head, later.head)
        if reason is None:
            return ()
        evidence = TopicEvidence((earlier.data, later.data))
        return (Breach(node_id, Misbehavior.OUT_OF_ORDER, reason, (), evidence),)

    def _base(self, signed: SignedHead) -> SignedHead | None:
        """Return an earlier head that still has exactly the held envelopes up to its end."""
        base = self._same.get(signed.head.originator_id)
        if base is None or base.head.through_id > signed.head.through_id:
            return None
        node_id, through = base.head.originator_id, base.head.through_id
        log, expired = self._logs.log(node_id), self._expired.get(node_id, {})
        held = log.count(through) + sum(n <= through and log.at(n) is None for n in expired)
        held += len(self._open(node_id, through))
        return base if held == base.head.chain.count else None

    def _ours(self, base: SignedHead | None, signed: SignedHead) -> list[Entry]:
        return self._entries(signed.head.originator_id, _through(base), signed.head.through_id)

    def _entries(self, node_id: int, after: int, through: int) -> list[Entry]:
        """Return the entries of held and of expired envelopes."""
        log, expired = self._logs.log(node_id), self._expired.get(node_id, {})
        gone = [each for n, each in expired.items() if after < n <= through and log.at(n) is None]
        return sorted([*log.entries(after, through), *gone])

    @staticmethod
    def _chain(base: SignedHead | None, entries: Sequence[Entry]) -> Chain:
        return (Chain() if base is None else base.head.chain).extended(entries)

    def _open(self, node_id: int, through: int) -> dict[int, HeldEnvelope]:
        """Return a node's promised envelopes up to an id that are not held."""
        log, found = self._logs.log(node_id), {}
        for number, promised in self._promised.get(node_id, {}).items():
            held = log.at(number)
            if number <= through and (held is None or held.digest != promised.digest):
                found[number] = promised
        return found

    @staticmethod
    def _omission(
        signed: SignedHead,
        base: SignedHead | None,
        entries: Sequence[Entry],
        held: HeldEnvelope,
    ) -> Breach:
        node_id = signed.head.originator_id
        reason = f"its topic head up to {signed.head.through_id} lacks {held.sequence_id}"
        heads = (signed.data,) if base is None else (base.data, signed.data)
        # More entries fit into no report.
        kind = Misbehavior.OUT_OF_ORDER if len(entries) <= MOST_ENTRIES else None
        evidence = TopicEvidence(heads, tuple(entries))
        return Breach(node_id, kind, reason, (held.envelope,), evidence)


def _through(head: SignedHead | None) -> int:
    return 0 if head is None else head.head.through_id


def _is_expired(entry: Entry, now: int) -> bool:
    return entry.expires_at is not None and entry.expires_at <= now
