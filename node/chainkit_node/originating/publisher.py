"""Judges what payers publish, and hands what may be stored to the sequencer (XIP-49 §3.3.4).

One thread judges all waiting requests at once, with one look at the database: a look for each
request took longer than all the rest. All envelopes of one request are accepted, or none is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import grpc

from chainkit.protocol.charges import charge_of, declared_days
from chainkit.protocol.publish_rules.client_envelope import Destination, ParsedClientEnvelope
from chainkit.protocol.publish_rules.judgement import (
    NodeView,
    PublishRequest,
    check_paid_length,
    depends_on_position,
    judge_publish,
    read_publish,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason, refused
from chainkit.service.refusals import InvalidRequest, Refusal
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Cursor
from chainkit_node.asked_by import ASKED_BY
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.group_thread import GroupThread
from chainkit_node.originating.freshness import ChainFreshness
from chainkit_node.originating.payers import PayerLimiter
from chainkit_node.originating.registration import Registration
from chainkit_node.originating.sequencer import MOST_WAITING_SECONDS, Answer, Sequencer
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.types import NewEnvelope

_MOST_PER_LOOK: Final = 100
"""Payloads that are judged at once, but for those of a larger request: the first waits for all."""

_BYTES_OF_A_PAYLOAD: Final = 16 << 10
"""Bytes that take as long to judge as one more payload."""

_DAY_SECONDS: Final = 24 * 60 * 60


class Conflict(Refusal):
    """The payload's cursor and the node's do not fit (XIP-49 §3.3.4: status 409)."""

    code = grpc.StatusCode.ABORTED


@dataclass(frozen=True, slots=True)
class Originator:
    """The parts that judging and numbering need."""

    log: EnvelopeLog
    sequencer: Sequencer
    registration: Registration
    freshness: ChainFreshness
    space: StorageSpace
    payers: PayerLimiter
    names_ungiven: Callable[[bytes, int], Mapping[int, int]]
    """As ``replicating.own_ids.UngivenIds.named_on``."""
    clock_ns: Callable[[], int] = time.time_ns


@dataclass(frozen=True, slots=True)
class _Request:
    envelopes: Sequence[bytes]
    answer: Answer


@dataclass(frozen=True, slots=True)
class _ReadRequest:
    publishes: Sequence[PublishRequest]
    answer: Answer


class Publisher:
    """Takes payers' envelopes. Runs a thread from its construction until ``close``."""

    def __init__(self, originator: Originator) -> None:
        """Take the parts that judge and number."""
        self._originator = originator
        self._thread = GroupThread[_Request](
            "judge",
            self._judge_all,
            _parts,
            _MOST_PER_LOOK,
            most_seconds=MOST_WAITING_SECONDS,
        )

    def accept(self, envelopes: Sequence[bytes]) -> Answer:
        """Judge a request's envelopes; the future has the stored envelopes, in their order.

        Callers take turns, as ``asked_by`` names them.

        The future has NotReady where the chain's latest state is not known, the disk is almost
        full, or the registry does not list this node; InvalidRequest with the broken rule; Conflict
        with the node's cursor; Unauthenticated for a payer that is not allowed; or Overloaded above
        a payer's rate, which is also raised where too many requests wait.
        """
        request, asked_by = _Request(envelopes, Future()), ASKED_BY.get()
        self._thread.put(request, "" if asked_by is None else asked_by.name)
        return request.answer

    def close(self) -> None:
        """Judge the waiting requests, and end the thread; the sequencer must still run."""
        self._thread.close()

    def _judge_all(self, waiting: Sequence[_Request]) -> None:
        # A caller that has gone meanwhile costs nothing more.
        requests = [each for each in waiting if not each.answer.cancelled()]
        with _refusing(requests):
            self._originator.freshness.check()
            node_id = self._originator.registration.node_id()
            self._originator.space.check()
            read = [found for each in requests if (found := _read(each)) is not None]
            self._judge(read, node_id)

    def _judge(self, requests: Sequence[_ReadRequest], node_id: int) -> None:
        originator = self._originator
        with _refusing(requests):
            clients = [each.client for request in requests for each in request.publishes]
            cursor, latest = self._position(clients)
            now = originator.clock_ns()
            for request in requests:
                with _refusing([request]):
                    payloads = []
                    for each in request.publishes:
                        chain_id, chain_ns = latest.get(each.client.topic, (0, 0))
                        topic = each.client.topic
                        ungiven = originator.names_ungiven(topic, cursor[node_id])
                        view = NodeView(node_id, cursor, chain_id, now, ungiven)
                        judge_publish(each, view)
                        payloads.append(_new(each, chain_ns))
                    originator.payers.admit(request.publishes)
                    originator.sequencer.submit(payloads, request.answer)

    def _position(
        self, clients: Sequence[ParsedClientEnvelope]
    ) -> tuple[Cursor, Mapping[bytes, tuple[int, int]]]:
        """Look once for all envelopes, and only if the judgement of one depends on the position."""
        topics = {each.topic for each in clients if depends_on_position(each)}
        return self._originator.log.position(topics) if topics else (Cursor(), {})


@contextmanager
def _refusing(requests: Sequence[_Request | _ReadRequest]) -> Iterator[None]:
    """Answer requests with the error, if there is one; no request has an answer yet."""
    try:
        yield
    except Exception as error:
        refusal = as_refusal(error) if isinstance(error, PublishRefused) else error
        for each in requests:
            if each.answer.set_running_or_notify_cancel():
                each.answer.set_exception(refusal)


def _parts(request: _Request) -> int:
    """Return how much there is to judge, in payloads of a usual size."""
    return sum(1 + len(each) // _BYTES_OF_A_PAYLOAD for each in request.envelopes)


def _read(request: _Request) -> _ReadRequest | None:
    """Return the request, or None where its bytes alone show that it is refused."""
    with _refusing([request]):
        return _ReadRequest(
            [read_for_originator(each) for each in request.envelopes], request.answer
        )
    return None


def read_for_originator(envelope: bytes) -> PublishRequest:
    """Take a PayerEnvelope apart that a node is to originate. Raises PublishRefused."""
    check_paid_length(envelope)
    publish = read_publish(envelope)
    if publish.client.destination is Destination.CHAIN:
        expected = "a payload for an originator"
        got = "a commit, a proposal or an identity update; a gateway posts it to the chain"
        raise refused(RefusalReason.BELONGS_TO_CHAIN, "payload", expected, got)
    return publish


def _new(publish: PublishRequest, chain_ns: int) -> NewEnvelope:
    """Return what is numbered; ``chain_ns`` is the time of the chain's latest on the topic."""
    client = publish.client
    # A message that names an earlier commit than the latest (ADR 27) comes after both.
    after_ns = chain_ns if client.last_seen[BLOCKCHAIN_ORIGINATOR_ID] else 0
    seconds, charge = declared_days(publish) * _DAY_SECONDS, charge_of(publish)
    return NewEnvelope(client.topic, publish.payer_envelope, seconds, after_ns, charge)


def as_refusal(error: PublishRefused) -> Refusal:
    """Return the answer to a payload that breaks a rule, with the node's cursor for a conflict."""
    kind = Conflict if error.reason.is_conflict else InvalidRequest
    refusal = kind(error.subject, error.expected, error.got, error.place or error.reason)
    if error.cursor is not None:
        refusal.cursor = error.cursor.sequence_ids
    return refusal
