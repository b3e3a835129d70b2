"""The page about bounds: each number is the code's, and each metric is one of a scrape."""

from __future__ import annotations

import re

from chainkit.misbehavior.received_batch import MOST_IDS_AHEAD
from chainkit.protocol import payer_reports, strict
from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.protocol.payer_envelope import MOST_PAID_LENGTH
from chainkit.protocol.publish_rules import judgement
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.service.edge.configuration import MOST_JSON_BYTES, WINDOW_BYTES, EdgeTimes
from chainkit.service.edge.pace import BYTES_OF_A_REFUSAL, PaceLimits
from chainkit.service.edge.server import SMALL_BYTES
from chainkit.service.edge.unfinished import UnfinishedLimits
from chainkit_client.accounts.account_file import MOST_KEY_PACKAGES, MOST_LINE_BYTES
from chainkit_client.exchange.provider import MOST_ASKS, MOST_TRIES
from chainkit_client.exchange.requester import MOST_ASKED
from chainkit_client.exchange.storage_service import MOST_ANSWER
from chainkit_client.storage.sync_groups import MOST_CONTROL_BYTES, MOST_CONTROL_MESSAGES
from chainkit_gateway.clients import OpenLimits
from chainkit_node import group_thread, reader_threads
from chainkit_node.repairing import range_keeper
from chainkit_node.replicating import dependencies, intake, repairer, replicator
from chainkit_node.reporting.bounds import ReportBounds, ReportRate
from chainkit_node.serving import limiter, requests
from chainkit_node.serving.api import REQUEST_BYTES
from chainkit_node.serving.edge import edge_limits
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.settings import (
    NodeLimits,
    PayerLimits,
    ServingLimits,
    StorageLimits,
    StrangerLimits,
)
from chainkit_node.storage.id_blocks import BLOCK_IDS
from chainkit_node.storage.payer_reports import MOST_REFUSED
from support.project import DOCS

ROWS = re.findall(
    r"^\| ([^|]+) \| ([\d,]+) \| ([^|]+) \| ([^|]+) \|$",
    (DOCS / "bounds.md").read_text(),
    re.MULTILINE,
)
REQUEST, STRANGER = ServingLimits(), StrangerLimits()
UNFINISHED = UnfinishedLimits()
PACE = PaceLimits()
EDGE = edge_limits(STRANGER, NodeLimits(), EdgeTimes())
CODE = {
    "bytes of a request": MOST_MESSAGE_BYTES,
    "bytes of a query": REQUEST_BYTES["QueryEnvelopes"],
    "bytes of a request for a stream": REQUEST_BYTES["SubscribeTopics"],
    "bytes of a report of misbehavior, with its message": REQUEST_BYTES["SubmitMisbehaviorReport"],
    "bytes of a request about health or reflection": SMALL_BYTES,
    "entries of a request of more than 64 KiB, with all within": requests.MOST_ENTRIES,
    "entries of such a request for streams of topics": requests.MOST_ENTRIES_OF_CURSORS,
    "topics or originators of a request": REQUEST.topics,
    "bytes of a topic": REQUEST.topic_bytes,
    "entries of a cursor": REQUEST.cursor,
    "payloads of a publish": REQUEST.publish,
    "identifiers of GetInboxIds": REQUEST.identifiers,
    "ranges of CompareRanges": REQUEST.ranges,
    "topics of QueryTopicHeads": REQUEST.topic_heads,
    "reports of a QueryPayerReports answer": REQUEST.payer_reports,
    "sequence ids of a payer report": payer_reports.MOST_IDS,
    "payers of a payer report": payer_reports.MOST_PAYERS,
    "refused payer reports that are kept of one node": MOST_REFUSED,
    "requests of an address in a second": STRANGER.requests_per_second,
    "parts of a request that count as a request": limiter.PARTS_OF_A_REQUEST,
    "bytes of a request that count as a request": limiter.BYTES_OF_A_REQUEST,
    "threads of one caller, of four that read": reader_threads.OF_ONE,
    "refused tokens of an address in a second": STRANGER.requests_per_second,
    "calls at a time": STRANGER.calls,
    "calls of an address at a time": STRANGER.calls_of_one,
    "open streams of an address": STRANGER.streams_of_one,
    "bytes of an address's requests for streams": STRANGER.filter_bytes_of_one,
    "bytes of answers to an address in a second": STRANGER.answer_bytes_per_second,
    "open connections": STRANGER.connections,
    "calls of a gateway at a time": OpenLimits().calls,
    "calls of a gateway's client at a time": OpenLimits().calls_of_one,
    "calls and streams of a connection": EDGE.streams_of_connection,
    "seconds until a request's headers are whole": EDGE.header_seconds,
    "seconds until a request is whole": EDGE.request_seconds,
    "seconds without a byte of a stream either way": EDGE.quiet_seconds,
    "seconds of an idle connection": EDGE.connection_seconds,
    "seconds of a TLS handshake": EDGE.handshake_seconds,
    "bytes that wait in a connection, each way": EDGE.buffer_bytes,
    "bytes of requests of an HTTP/2 connection that wait for Python": WINDOW_BYTES,
    "bytes of a request's headers": EDGE.header_bytes,
    "bytes of a request in JSON": MOST_JSON_BYTES,
    "bytes of memory, Envoy's and most of Python's": EDGE.heap_bytes,
    "unfinished requests of an address": UNFINISHED.requests_of_one,
    "unfinished requests of all": UNFINISHED.requests,
    "bytes of an address's requests under way": UNFINISHED.bytes_of_one,
    "bytes of all requests under way": UNFINISHED.bytes,
    "refusals to an address in a second": PACE.per_second,
    "refusals to an address at once": PACE.burst,
    "bytes of a refused request that count as a refusal": BYTES_OF_A_REFUSAL,
    "seconds for which a refusal waits": PACE.seconds,
    "refusals of an address that wait": PACE.late_of_one,
    "refusals of all that wait": PACE.late,
    "bytes of a payer envelope": MOST_PAID_LENGTH,
    "repeated and unknown fields of a payload": strict.MOST_FIELDS,
    "originators in a payload's cursor, beyond those held": judgement.CURSOR_ROOM,
    "publishes of an address that wait to be judged": group_thread.MOST_WAITING,
    "publishes of all that wait to be judged": group_thread.MOST_OF_ALL,
    "published bytes of an address in a second": STRANGER.publish_bytes_per_second,
    "published bytes of a payer in a second": PayerLimits().bytes_per_second,
    "bytes that stay free for the database": StorageLimits().free_bytes,
    "a sequence id beyond the last held, nothing between expired": MOST_IDS_AHEAD,
    "missing ids of a run that are kept as a bitmap": BLOCK_IDS,
    "envelopes of a transaction that changes gaps": intake.MOST_CHANGES,
    "envelopes of one originator that wait for dependencies": dependencies.MOST_WAITING,
    "bytes of these envelopes": dependencies.MOST_WAITING_BYTES,
    "ranges whose digests are stored at once": range_keeper.PIECE_RANGES,
    "repeated envelopes in a row of a stream": replicator.MOST_REPEATED,
    "envelopes that one comparison fetches": repairer.MOST_FETCHED,
    "reports of an address in a minute": ReportRate().per_minute,
    "bytes of a report of a slow or missing answer": ReportBounds().liveness_bytes,
    "seconds that a client's clock is ahead": MOST_SECONDS_AHEAD,
    "messages for the program that wait": MOST_CONTROL_MESSAGES,
    "bytes of such a message": MOST_CONTROL_BYTES,
    "requests for history that wait for a decision": MOST_ASKS,
    "PINs that are typed for a request": MOST_TRIES,
    "devices that are asked at once": MOST_ASKED,
    "bytes of the first line of a backup account file": MOST_LINE_BYTES,
    "key packages in it": MOST_KEY_PACKAGES,
    "bytes of an answer to an upload": MOST_ANSWER,
}


def test_page__each_bound__is_the_codes() -> None:
    assert {name: bound for name, bound, *_ in ROWS} == {
        name: f"{bound:,}" for name, bound in CODE.items()
    }


def test_page__each_metric__is_one_of_a_scrape() -> None:
    scrape = NodeMetrics().text().decode()
    named = {name for *_, told in ROWS for name in re.findall(r"`(\w+)`", told)}

    assert named
    for name in named:
        assert f"# TYPE chainkit_node_{name.removesuffix('_total')}" in scrape, name
