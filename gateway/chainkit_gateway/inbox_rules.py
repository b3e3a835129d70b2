"""Judges an identity update before it is paid for, by the updates that nodes serve (XIP-46).

The contracts judge the update about a block later, and a node may lag behind or lie. So an update
is refused only if no answering node serves an inbox that accepts the update; where no node
answers, the chain decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from chainkit.errors import ChainkitError, MalformedData, RefusedUpdate
from chainkit.identity.refusals import Refusal
from chainkit.identity.update import update_in
from chainkit.identity.validation import restore, validate
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.service.refusals import InvalidRequest, PassedOn
from chainkit_gateway.types import Publication

MOST_UPDATES: Final = 1000
"""Updates of an inbox that are read; a longer history is left to the chain."""

Ask = Callable[[bytes, Mapping[int, int], float], Awaitable[Sequence[bytes]]]
"""A node's ``behind``: a page of a topic behind a cursor, within so many seconds."""


async def check_update(publication: Publication, nodes: Sequence[Ask], seconds: float) -> None:
    """Raise InvalidRequest where an identity update breaks a rule by what nodes serve."""
    refusal = None
    for ask in nodes:
        try:
            earlier = await _earlier(publication.topic, ask, seconds)
        except (NodeLost, NodeUnreached, PassedOn):
            continue
        refusal = await asyncio.to_thread(_refusal, publication, earlier)
        if refusal is None:
            return
    if refusal is not None:
        raise refusal


async def _earlier(topic: bytes, ask: Ask, seconds: float) -> Sequence[bytes]:
    """Return the envelopes of a topic, at most MOST_UPDATES + 1."""
    found: list[bytes] = []
    cursor: dict[int, int] = {}
    while page := await ask(topic, dict(cursor), seconds):
        before = len(found)
        for envelope in page:
            place = _place(envelope)
            # A node that repeats a page would be asked without end.
            if place[1] > cursor.get(place[0], 0):
                cursor[place[0]] = place[1]
                found.append(envelope)
        if len(found) == before or len(found) > MOST_UPDATES:
            break
    return found


def _place(envelope: bytes) -> tuple[int, int]:
    try:
        served = parse_originator_envelope(envelope)
    except MalformedData as error:
        raise NodeLost("node", "envelopes of the chain", error) from error
    return served.originator_id, served.sequence_id


def _refusal(publication: Publication, earlier: Sequence[bytes]) -> InvalidRequest | None:
    if len(earlier) > MOST_UPDATES:
        return None
    try:
        state = restore(_updates(earlier))
    except (MalformedData, RefusedUpdate):
        # No rule accepts what this node serves: ignore the node.
        return None
    try:
        validate(state, publication.identifier, update_in(publication.client_envelope))
    except RefusedUpdate as error:
        if error.reason is Refusal.UNKNOWN_CHAIN:
            # Only a contract wallet's signature is in doubt; a node may know the wallet's chain.
            return None
        return _as_request(error, str(error.reason))
    except MalformedData as error:
        return _as_request(error, str(Refusal.MALFORMED))
    return None


def _updates(envelopes: Sequence[bytes]) -> Iterator[bytes]:
    return (update_in(parse_originator_envelope(each).client_envelope) for each in envelopes)


def _as_request(error: ChainkitError, reason: str) -> InvalidRequest:
    place = f"{reason}; {error.place}" if error.place else reason
    return InvalidRequest(error.subject, error.expected, error.got, place)
