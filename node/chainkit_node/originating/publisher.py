"""Judges what payers publish, and hands what may be stored to the sequencer (XIP-49 §3.3.4).

Parsing and signatures are judged in threads, many at a time. All envelopes of one request are
accepted, or none is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import grpc

from chainkit.protocol.publish_rules.client_envelope import Destination
from chainkit.protocol.publish_rules.judgement import (
    NodeView,
    PublishRequest,
    judge_publish,
    read_publish,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason, refused
from chainkit.service.refusals import InvalidRequest, Refusal
from chainkit.types import TopicKind
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.originating.freshness import ChainFreshness
from chainkit_node.originating.registration import Registration
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.types import NewEnvelope

_DAY_SECONDS: Final = 24 * 60 * 60
_RETENTION_DAYS: Final = {
    TopicKind.GROUP_MESSAGE: 30,
    TopicKind.WELCOME: 90,
    TopicKind.KEY_PACKAGE: 90,
}
"""How long a payload is kept where its payer has no wish (XIP-69)."""


class Conflict(Refusal):
    """The payload's cursor and the node's do not fit (XIP-49 §3.3.4: status 409)."""

    code = grpc.StatusCode.ABORTED


@dataclass(frozen=True, slots=True)
class Originator:
    """All that judging and numbering needs."""

    log: EnvelopeLog
    sequencer: Sequencer
    registration: Registration
    freshness: ChainFreshness
    clock_ns: Callable[[], int] = time.time_ns


class Publisher:
    """Takes payers' envelopes."""

    def __init__(self, originator: Originator) -> None:
        """Take who judges and numbers."""
        self._originator = originator

    def accept(self, envelopes: Sequence[bytes]) -> Future[Sequence[bytes]]:
        """Judge a request's envelopes; the future has them as they are stored, in their order.

        Waits for the database: call it in a thread. Raises NotReady where the chain's latest state
        is not known, or the registry does not list this node; InvalidRequest with the rule that is
        broken; Conflict with the node's cursor; and Overloaded.
        """
        originator = self._originator
        originator.freshness.check()
        node_id = originator.registration.node_id()
        try:
            publishes = [_read(each) for each in envelopes]
            self._judge(publishes, node_id)
        except PublishRefused as error:
            raise _as_refusal(error) from error
        return originator.sequencer.submit([_new(each) for each in publishes])

    def _judge(self, publishes: Sequence[PublishRequest], node_id: int) -> None:
        topics = [each.client.topic for each in publishes]
        cursor, latest = self._originator.log.position(topics)
        now = self._originator.clock_ns()
        for publish in publishes:
            view = NodeView(node_id, cursor, latest.get(publish.client.topic, 0), now)
            judge_publish(publish, view)


def _read(envelope: bytes) -> PublishRequest:
    publish = read_publish(envelope)
    if publish.client.destination is Destination.CHAIN:
        expected = "a payload for an originator"
        got = "a commit, a proposal or an identity update; a gateway posts it to the chain"
        raise refused(RefusalReason.BELONGS_TO_CHAIN, "payload", expected, got)
    return publish


def _new(publish: PublishRequest) -> NewEnvelope:
    days = publish.retention_days or _RETENTION_DAYS[publish.client.kind]
    return NewEnvelope(publish.client.topic, publish.payer_envelope, days * _DAY_SECONDS)


def _as_refusal(error: PublishRefused) -> Refusal:
    kind = Conflict if error.reason.is_conflict else InvalidRequest
    refusal = kind(error.subject, error.expected, error.got, error.place or error.reason)
    if error.cursor is not None:
        refusal.cursor = error.cursor.sequence_ids
    return refusal
