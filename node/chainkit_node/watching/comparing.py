"""A peer's answer to a client, beside this node's own envelopes; no I/O, no clock (XIP-49 §3.2.7).

A payload of the chain is compared only where it is final here: every honest node builds the same
unsigned bytes of it, and names the same transaction. An id without an envelope here, such as one in
quarantine, is not compared. Envelopes of other originators are compared by what they signed.

An answer that lacks an envelope proves nothing, since nobody signs that. It is only counted, and
only where the peer serves a later one: a peer that lags behind leaves nothing out.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.errors import InvalidSignature, MalformedAnswer
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key, stated_place
from chainkit.protocol.envelope_queries import envelopes_behind, topics_behind
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.received_envelope import read_received
from chainkit.types import Place

PAGE: Final = 50
"""Envelopes that are asked for at once."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query for at most PAGE envelopes, by one originator or by topics."""

    cursor: Mapping[int, int]
    """Originator ids to the sequence ids behind which envelopes are wanted."""
    originator_id: int | None = None
    topics: frozenset[bytes] = frozenset()
    picked: tuple[Place, ...] = ()
    """Envelopes on the topics that this node holds, and that the answer should have."""

    def request(self) -> message_api_pb2.QueryEnvelopesRequest:
        """Return the request of a client."""
        if self.originator_id is None:
            query = topics_behind(sorted(self.topics), self.cursor)
        else:
            query = envelopes_behind(self.originator_id, self.cursor.get(self.originator_id, 0))
        return message_api_pb2.QueryEnvelopesRequest(query=query, limit=PAGE)


@dataclass(frozen=True, slots=True)
class Served:
    """An envelope of an answer, and the place that it states."""

    place: Place
    envelope: bytes
    """A serialized OriginatorEnvelope, as it came."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that may have signed what a peer serves; 65 bytes each."""

    peer: bytes
    chain_ids: Collection[int]
    """The chain's originators: each node signs their envelopes itself."""
    originators: Mapping[int, bytes]
    """The registered nodes' keys, by id."""


@dataclass(frozen=True, slots=True)
class Findings:
    """How an answer differs from what this node holds."""

    compared: int = 0
    """Envelopes that both have."""
    inconsistent: tuple[bytes, ...] = ()
    """Payloads of the chain that the peer signed and the final chain does not have so."""
    differing: tuple[Served, ...] = ()
    """Envelopes that their originator signed, where this node holds others at the same place."""
    omitted: tuple[Place, ...] = ()
    """Envelopes that the peer leaves out, although it serves later ones."""
    unsigned: int = 0
    """Payloads of the chain that the peer serves as they are, without a signature of its own."""


def chain_question(final_ids: Mapping[int, int], chance: random.Random) -> Question | None:
    """Ask for a page of one of the chain's originators; None where there is no originator.

    ``final_ids`` are their highest final sequence ids. Every second page is the newest that is
    final here, which clients read most; the other pages lie anywhere.
    """
    if not final_ids:
        return None
    originator_id = chance.choice(sorted(final_ids))
    last = final_ids[originator_id]
    is_newest = chance.random() < 0.5
    after = max(last - PAGE, 0) if is_newest else chance.randrange(max(last, 1))
    return Question({originator_id: after}, originator_id)


def read_answer(answer: bytes, question: Question) -> list[Served]:
    """Take a peer's answer apart.

    Raises MalformedAnswer for one that no honest node gives to the question, and MalformedEnvelope.
    No signature is checked.
    """
    try:
        envelopes = Envelopes.FromString(answer).envelopes
    except DecodeError as error:
        raise MalformedAnswer("answer", "a QueryEnvelopesResponse", error) from error
    if len(envelopes) > PAGE:
        raise MalformedAnswer("answer", f"at most {PAGE} envelopes", len(envelopes))
    served = [Served(stated_place(each), each) for each in envelopes]
    for originator_id, sequence_id in (each.place for each in served):
        if question.originator_id not in (None, originator_id):
            expected = f"those of originator {question.originator_id}"
            raise MalformedAnswer("answer", expected, f"one of originator {originator_id}")
        if sequence_id <= (after := question.cursor.get(originator_id, 0)):
            expected = f"those of originator {originator_id} behind {after}"
            raise MalformedAnswer("answer", expected, sequence_id)
    return served


def compare_served(
    served: Iterable[Served], own: Mapping[Place, bytes], wanted: Iterable[Place], keys: Keys
) -> Findings:
    """Compare an answer with this node's own envelopes, of the chain only those that are final.

    ``wanted`` are places that the answer should have, up to its last one of each originator. Raises
    MalformedEnvelope and InvalidSignature where the peer serves an envelope that its originator, or
    the peer for the chain, did not sign.
    """
    served = list(served)
    inconsistent: list[bytes] = []
    differing: list[Served] = []
    compared = unsigned = 0
    for each in served:
        held = own.get(each.place)
        if each.place[0] in keys.chain_ids:
            if _is_unsigned(each, held):
                unsigned += 1
            elif _differs_from_chain(each, held, keys.peer):
                inconsistent.append(each.envelope)
        elif each.place[0] not in keys.originators:
            continue  # a node that the registry lists in a block that was not followed yet
        elif _differs_from_log(each, held, keys.originators[each.place[0]]):
            differing.append(each)
        compared += held is not None
    left_out = _omitted(served, wanted)
    return Findings(compared, tuple(inconsistent), tuple(differing), left_out, unsigned)


def _is_unsigned(each: Served, held: bytes | None) -> bool:
    """Return whether a payload of the chain has no signature, and is not false as far as known.

    Nodes of another make name the transaction alone. Clients look such a payload up by that; there
    is nothing to hold against the peer.
    """
    parsed = parse_originator_envelope(each.envelope)
    if parsed.node_signature or held is None:
        return not parsed.node_signature
    own = parse_originator_envelope(held)
    told = (parsed.client_envelope, parsed.transaction_hash)
    return told == (own.client_envelope, own.transaction_hash)


def _differs_from_chain(each: Served, held: bytes | None, key: bytes) -> bool:
    parsed = parse_originator_envelope(each.envelope)
    if recover_node_key(parsed) != key:
        subject = f"envelope {each.place[1]} of originator {each.place[0]}"
        raise InvalidSignature(subject, "the signature of the node that serves it", "another's")
    if held is None:
        return False
    own = parse_originator_envelope(held)
    return (parsed.unsigned_originator_envelope, parsed.transaction_hash) != (
        own.unsigned_originator_envelope,
        own.transaction_hash,
    )


def _differs_from_log(each: Served, held: bytes | None, key: bytes) -> bool:
    if each.envelope == held:
        return False
    digest = read_received(each.envelope, each.place[0], key).digest
    return held is not None and digest != read_received(held, each.place[0], key).digest


def _omitted(served: Sequence[Served], wanted: Iterable[Place]) -> tuple[Place, ...]:
    places = {each.place for each in served}
    last: dict[int, int] = {}
    for originator_id, sequence_id in places:
        last[originator_id] = max(last.get(originator_id, 0), sequence_id)
    return tuple(
        place for place in wanted if place not in places and place[1] < last.get(place[0], 0)
    )
