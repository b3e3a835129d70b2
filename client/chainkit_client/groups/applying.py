"""Applies payloads of a group's topic in order, each once, or stores one until it may succeed.

Payloads come in the causal order, payloads of the chain in the chain's order (R6). A late payload
of the chain takes the group back to before its place. A failed payload is tried again where the
history changes (R26).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from chainkit.errors import ReorgTooDeep
from chainkit_client.groups.page import MOST_PAYLOADS, Page
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.groups.receiving import receive, refuse
from chainkit_client.groups.results import is_commit, is_same, is_worth_trying, kept_payload
from chainkit_client.groups.rewinding import retract
from chainkit_client.groups.session import Session
from chainkit_client.mls.engine import EngineFailed
from chainkit_client.storage import payloads
from chainkit_client.storage.payloads import PayloadResult
from chainkit_client.storage.schema import PayloadStatus


def apply(session: Session, received: Iterable[Payload]) -> Iterator[Outcome]:
    """Apply payloads, each once: payloads of the chain one by one, payloads of nodes by the page.

    Raises EngineFailed where the engine did not answer: the payloads before are recorded, and
    nothing of the payload at fault.
    """
    chain_ids = session.tools.chain_ids
    for is_chain, several in groupby(received, lambda each: each.originator_id in chain_ids):
        if is_chain:
            for payload in several:
                yield _apply_whole(session, payload)
            continue
        while page := list(islice(several, MOST_PAYLOADS)):
            yield from _apply_page(session, page)


def _apply_whole(session: Session, payload: Payload) -> Outcome:
    """Apply a payload of the chain, or change nothing."""
    session.flush()
    try:
        with session.connection.begin_nested():
            return _apply_chain(session, payload)
    except EngineFailed:
        session.reload()
        raise


def _apply_page(session: Session, received: Sequence[Payload]) -> Iterator[Outcome]:
    """Apply at most MOST_PAYLOADS payloads of nodes, and move the topic's cursor."""
    page = Page.read(session.connection, session.tools.seal, received)
    for payload in received:
        known = page.known.get(payload.place)
        if known is not None:
            is_it = known.payload_hash == payload.payload_hash
            yield _repeated(known) if is_it else _apply_second(session, payload, page)
            continue
        outcome, page.known[payload.place] = receive(session, payload, page)
        session.read_up_to(*payload.place, payload.originator_ns)
        yield outcome


def _apply_second(session: Session, payload: Payload, page: Page) -> Outcome:
    """Apply a payload in whose place a node signed another one, which was read before.

    Some members may have got this payload alone, such as its sender. The topic's results have one
    row for a place, so the result has a topic of its own; a payload that waits has none yet.
    """
    topic = session.topic + payload.payload_hash
    known = payloads.read_result(session.connection, topic, *payload.place)
    if known is not None and known.status is not PayloadStatus.WAITING:
        return _repeated(known)
    session.flush()
    outcome, _ = receive(session, payload, page, topic)
    session.flush()
    return outcome


def _apply_chain(session: Session, payload: Payload) -> Outcome:
    page = Page.read(session.connection, session.tools.seal, [payload])
    known = page.known.get(payload.place)
    if known is not None and is_same(known, payload):
        return _repeated(known)
    session.flush()
    cursor = payloads.read_cursor(session.connection, session.topic)
    if payload.sequence_id <= cursor.get(payload.originator_id, 0):
        # Another payload was here, or this one was hidden: read later payloads again.
        try:
            retract(session, payload.originator_id, payload.sequence_id - 1)
        except ReorgTooDeep as error:
            if known is not None or payload.originator_id not in session.tools.sparse_ids:
                raise
            # It came under a sparse id, below commits that are final.
            return refuse(session, payload, f"came late: {error}")
    outcome, _ = receive(session, payload, page)
    session.read_up_to(*payload.place, payload.originator_ns)
    if outcome.epoch is not None:
        settle(session)
    return outcome


def _repeated(known: PayloadResult) -> Outcome:
    place = known.originator_id, known.sequence_id
    return Outcome(place, known.status, known.reason, is_repeated=True)


def settle(session: Session) -> None:
    """Try stored payloads again that may succeed with the group's history now."""
    while session.current is not None and session.is_member and _next_commit(session):
        pass
    if session.current is None:
        return
    session.flush()
    for result in payloads.read_kept(session.connection, session.topic, session.epoch):
        if not is_commit(result) and is_worth_trying(session, result):
            _try_again(session, result)


def _next_commit(session: Session) -> bool:
    """Try the next stored commit; return whether a commit was accepted."""
    session.flush()
    kept = payloads.read_kept(session.connection, session.topic, session.epoch)
    place = session.current.place if session.current else None
    for result in kept:
        is_behind = place is None or result.sequence_id > place[1]
        is_chain = result.originator_id in session.tools.chain_ids
        if not is_chain or not is_behind or not is_commit(result):
            continue
        if result.epoch != session.epoch or not is_worth_trying(session, result):
            continue
        if _try_again(session, result).epoch is not None:
            return True
    return False


def _try_again(session: Session, result: PayloadResult) -> Outcome:
    payload = kept_payload(session, result)
    page = Page.read(session.connection, session.tools.seal, [payload])
    return receive(session, payload, page)[0]
