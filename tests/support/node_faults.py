"""Faults of a node, and the answer that ``node status`` gives an operator to each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from chainkit.errors import (
    AccessRefused,
    EndpointUnavailable,
    InconsistentAnswer,
    StoreUnavailable,
    WrongChain,
)
from chainkit.service.refusals import NotReady
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_node.inspection.attention import Reason
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.replicating.replicator import StreamState
from chainkit_node.watching.about_self import Hosted
from support.accounting_faults import filling, refused_report, unattested_report
from support.faulty_node import (
    AUTHORITY,
    LIMITS,
    FaultyNode,
    own_envelopes,
    peers_envelopes,
)
from support.indexer.loop_results import idle
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.reporting import ACCUSED, KEYS, OTHER, OWN, proof, register

AWAY = EndpointUnavailable("http://one", "an answer", "connection refused")
AT_ONCE = ReadyLimits(stale_seconds=1e-9)
"""Everything is stale."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong, and the answer of ``node status``."""

    name: str
    """A fault in the guide's words."""
    said: str
    page: str
    reason: Reason | None
    """None where the node does not answer at all."""
    breaks: Callable[[FaultyNode], object]
    limits: ReadyLimits = LIMITS
    is_registered: bool = True


def disable(node: FaultyNode) -> None:
    register(node.host, disabled=[OWN, OTHER])


def clock_ahead(node: FaultyNode) -> None:
    for each in (200, 300):
        node.clock.told(each, int((node.now - 600) * 1e9), 0.01)


def clock_behind(node: FaultyNode) -> None:
    node.last_own_ns = int((node.now + 900) * 1e9)
    node.clock.succeeded(idle(10), 0.1)


def other_signs(node: FaultyNode) -> None:
    node.twin.begins()
    node.twin.was_answered(b"a question")


def space(node: FaultyNode) -> None:
    node.free = 7
    node.space.succeeded(idle(10), 0.1)


def older(node: FaultyNode) -> None:
    record = SequenceRecord(node.folder / "record")
    record.advance(OWN, 42)
    node.own_log = lambda: record.check(OWN, 30)


def unanswered(node: FaultyNode) -> None:
    def check() -> None:
        raise NotReady("own log", "an answer of another node", "none yet of node 200")

    node.own_log = check


def two_of_one_id(node: FaultyNode) -> None:
    node.take(OWN, *own_envelopes(2))
    node.take(OWN, Originator(OWN, KEYS[OWN]).signed(1, 1.5))


def silent_peer(node: FaultyNode) -> None:
    error = "node 200: expected an answer within 4 s, got none"
    node.peer(ACCUSED, StreamState(False, error, 0, 0.0))
    node.unreachable.add(ACCUSED)


def lying_peer(node: FaultyNode) -> None:
    error = "node 200: certificate at 192.0.2.7: unable to get local issuer certificate"
    node.peer(ACCUSED, StreamState(False, error, 0, 0.0))


def gap(node: FaultyNode) -> None:
    node.now = BEGIN_NS / SECOND_NS + 60
    log = peers_envelopes(9)
    node.take(ACCUSED, *log[:2], *log[5:])


def silent_loop(node: FaultyNode) -> None:
    node.loop.call_soon_threadsafe(time.sleep, 1.5)


def endpoints(node: FaultyNode, error: Exception, times: int = 3) -> None:
    for _ in range(times):
        node.pool.failed(node.pool.endpoints[0], error)  # type: ignore[arg-type]


def all_away(node: FaultyNode) -> None:
    for each in node.pool.endpoints:
        for _ in range(3):
            node.pool.failed(each, AWAY)
    node.monitor.failed(AWAY)


def contradictions(node: FaultyNode) -> None:
    for _ in range(3):
        node.monitor.failed(InconsistentAnswer("logs at http://one", "all up to 9", "up to 8"))


def no_database(node: FaultyNode) -> None:
    def reading() -> None:
        raise StoreUnavailable("database node", "an answer", "connection refused")

    node.host.store.reading = reading  # type: ignore[method-assign, assignment]


def step_without_database(node: FaultyNode) -> None:
    error = StoreUnavailable("database node", "a disk with free space", "none")
    node.monitor.failed(error)


def full_record(node: FaultyNode) -> None:
    error = StoreUnavailable("sequence record r", "a file that can be written", "No space left")
    node.refusals.refused(error)


def nothing(node: FaultyNode) -> None: ...


NOT_REGISTERED = "the registry was not followed yet"
FAULTS = [
    Fault(
        "the registry does not list the node's key, or was not followed yet",
        NOT_REGISTERED,
        "node-not-enabled",
        Reason.NOT_REGISTERED,
        nothing,
        is_registered=False,
    ),
    Fault(
        "the council disabled the node",
        "the registry has this node disabled",
        "node-not-enabled",
        Reason.DISABLED,
        disable,
        is_registered=False,
    ),
    Fault(
        "a proof against the node is stored here",
        "1 hosted report with a proof against this node",
        "node-accused",
        Reason.ACCUSED,
        lambda node: node.host.submit(proof(5, OWN)),
    ),
    Fault(
        "a proof against the node is stored at another one",
        "2 proofs against this node at 300",
        "node-accused",
        Reason.ACCUSED,
        lambda node: node.hosted.update({OTHER: Hosted({b"one", b"two"}, 0)}),
    ),
    Fault(
        "the node signed an id twice",
        "this node signed two envelopes under 1 id",
        "node-accused",
        Reason.OWN_LOG_FORKED,
        two_of_one_id,
    ),
    Fault(
        "a second process has the node's key",
        "a twin: nothing is originated: another process with its key at its URL",
        "node-twin-found",
        Reason.TWIN_FOUND,
        other_signs,
    ),
    Fault(
        "the clock is ahead or behind",
        "600 s ahead",
        "node-clock-wrong",
        Reason.CLOCK_WRONG,
        clock_ahead,
    ),
    Fault(
        "the clock was set behind the node's last envelope",
        "nothing is originated: clock: expected",
        "node-clock-wrong",
        Reason.CLOCK_WRONG,
        clock_behind,
    ),
    Fault(
        "the database has no room",
        "nothing is originated: publish: expected at least 536870912 bytes free",
        "node-storage-short",
        Reason.STORAGE_SHORT,
        space,
    ),
    Fault(
        "the database is older than the sequence record",
        "nothing is originated yet: node 100: expected envelopes up to sequence id 42",
        "node-own-log-waits",
        Reason.OWN_LOG_WAITS,
        older,
    ),
    Fault(
        "there is no sequence record, and no other node answers",
        "nothing is originated yet: own log: expected an answer of another node",
        "node-own-log-waits",
        Reason.OWN_LOG_WAITS,
        unanswered,
    ),
    Fault(
        "the certificate has expired, or has another name",
        "certificate: others refuse it: certificate has expired",
        "node-certificate-refused",
        Reason.CERTIFICATE_WRONG,
        lambda node: node.certified(AUTHORITY, days=-1),
    ),
    Fault(
        "the certificate was not renewed",
        "certificate: it ends on ",
        "node-certificate-ends",
        Reason.CERTIFICATE_WRONG,
        lambda node: node.certified(AUTHORITY, days=5),
    ),
    Fault(
        "another node does not answer",
        "node 200 does not answer: expected an answer within 4 s, got none",
        "node-peers-unreachable",
        Reason.PEER_UNREACHABLE,
        silent_peer,
    ),
    Fault(
        "another node answers with errors, or its certificate is refused",
        "no stream of node 200: certificate at 192.0.2.7: unable to get local issuer",
        "node-peers-unreachable",
        Reason.PEER_FAILING,
        lying_peer,
    ),
    Fault(
        "another node leaves envelopes out",
        "originator 200 leaves out 3 ids",
        "node-gaps-found",
        Reason.ENVELOPES_OMITTED,
        gap,
    ),
    Fault(
        "the database grows until it has no room",
        "in 5 d the database has no room for publishes: it grows by 2.0 GB a day",
        "node-storage-fills",
        Reason.STORAGE_FILLS,
        filling,
    ),
    Fault(
        "another node signs a payer report that its envelopes contradict",
        "1 payer report of node 200 refused, the last one of ids 1 to 9: it signed another report",
        "node-payer-report-refused",
        Reason.PAYER_REPORT_REFUSED,
        refused_report,
    ),
    Fault(
        "too few nodes sign this node's payer reports",
        "for 8 h too few nodes have signed its payer report of ids 1 to 9",
        "node-payer-report-unattested",
        Reason.PAYER_REPORT_UNATTESTED,
        unattested_report,
    ),
    Fault(
        "the node has more to do than it can",
        "its own loop is 3.0 s late",
        "node-overloaded",
        Reason.OVERLOADED,
        lambda node: setattr(node, "late_seconds", 3.0),
    ),
    Fault(
        "the node hangs",
        "the node gives no answer: event loop: expected a turn within 1 s",
        "node-overloaded",
        Reason.OVERLOADED,
        silent_loop,
    ),
    Fault(
        "no endpoint of the chain answers",
        "endpoint http://two is cooling: http://one: expected an answer, got connection refused",
        "all-endpoints-out",
        Reason.ENDPOINT_FAILING,
        all_away,
    ),
    Fault(
        "an endpoint refuses access",
        "endpoint http://one is refused: http://one: expected HTTP 200, got HTTP 403",
        "endpoint-refused",
        Reason.ENDPOINT_FAILING,
        lambda node: endpoints(node, AccessRefused("http://one", "HTTP 200", "HTTP 403"), 1),
    ),
    Fault(
        "an endpoint lies, or serves another chain",
        "endpoint http://one is quarantined: chain id at http://one: expected 1, got 2",
        "endpoint-quarantined",
        Reason.ENDPOINT_FAILING,
        lambda node: endpoints(node, WrongChain("chain id at http://one", 1, 2), 1),
    ),
    Fault(
        "two endpoints show two chains",
        "endpoint http://two shows another chain",
        "two-chains",
        Reason.CHAINS_DIFFER,
        lambda node: node.watches({"http://two": True}),
    ),
    Fault(
        "the chain, or the endpoint, stands still",
        "not ready: head: expected ",
        "head-stale",
        Reason.NOT_READY,
        nothing,
        AT_ONCE,
    ),
    Fault(
        "the node is behind the chain",
        "not ready: cursor: expected 10, got 90 blocks",
        "cursor-stale",
        Reason.NOT_READY,
        lambda node: node.monitor.succeeded(idle(10, 100), 0.1),
    ),
    Fault(
        "endpoints contradict each other, again and again",
        "not ready: sequence: expected 3, got 3 contradictions in a row: logs at http://one",
        "sequence-gap",
        Reason.NOT_READY,
        contradictions,
    ),
    Fault(
        "the database does not store",
        "not ready: database: expected available, got unavailable: database node: expected a disk",
        "database-unavailable",
        Reason.NOT_READY,
        step_without_database,
    ),
    Fault(
        "the database does not answer",
        "expected a snapshot, got database node: expected an answer, got connection refused",
        "database-unavailable",
        None,
        no_database,
    ),
    Fault(
        "stored rows differ from the chain",
        "the chain contradicts 2 stored rows",
        "stored-rows-differ",
        Reason.STORED_ROWS_DIFFER,
        lambda node: node.watches({}, 2),
    ),
    Fault(
        "a contract wallet's chain gives no answer",
        "1 identity update waiting for the chain of a contract wallet, and all behind",
        "node-updates-waiting",
        Reason.UPDATES_WAITING,
        lambda node: setattr(node, "updates_waiting", 1),
    ),
    Fault(
        "the sequence record's disk is full",
        "a publish was refused: sequence record r: expected a file that can be written",
        "node-refuses-publishes",
        Reason.PUBLISHES_REFUSED,
        full_record,
    ),
]
