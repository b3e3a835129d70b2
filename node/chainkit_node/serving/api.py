"""The services and methods of a node, by the names that readers and payers call them."""

from __future__ import annotations

from typing import Final

from chainkit.protocol.methods import (
    LOG_API,
    MESSAGE_PACKAGE,
    MISBEHAVIOR_API,
    MOST_MESSAGE_BYTES,
    PAYER_REPORT_API,
    REPLICATION_API,
    TOPIC_API,
)
from chainkit.service.grpc_methods import Methods, Unary
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.hub import Hub
from chainkit_node.serving.comparing import LogComparer
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.payer_reports import PayerReportsHandler
from chainkit_node.serving.reading import Reader
from chainkit_node.serving.reports import MisbehaviorApi
from chainkit_node.serving.subscribing import Subscriber
from chainkit_node.settings import ServingLimits

_QUERIES: Final = ("QueryEnvelopes", "SubscribeTopics", "GetInboxIds", "GetNewestEnvelope")
_PUBLISH: Final = ("PublishPayerEnvelopes",)
SERVICES: Final = {
    REPLICATION_API: (*_QUERIES, *_PUBLISH, "SubscribeEnvelopes"),
    # Today's schema splits the methods between these two services.
    f"{MESSAGE_PACKAGE}.QueryApi": _QUERIES,
    f"{MESSAGE_PACKAGE}.PublishApi": _PUBLISH,
    MISBEHAVIOR_API: ("SubmitMisbehaviorReport", "QueryMisbehaviorReports"),
    LOG_API: ("CompareRanges",),
    TOPIC_API: ("QueryTopicHeads",),
    PAYER_REPORT_API: ("QueryPayerReports",),
}

_QUERY_BYTES: Final = 1 << 20
"""10,000 topics and a cursor of 1,000 entries have fewer."""
_SUBSCRIPTION_BYTES: Final = 8 << 20
"""As many as an address may have open: each topic has a cursor of its own."""
_REPORT_BYTES: Final = 16 << 20
"""A report of two envelopes, and one that is refused with its own words."""
REQUEST_BYTES: Final = {
    **dict.fromkeys((name for names in SERVICES.values() for name in names), _QUERY_BYTES),
    **dict.fromkeys(("SubscribeEnvelopes", "SubscribeTopics"), _SUBSCRIPTION_BYTES),
    "PublishPayerEnvelopes": MOST_MESSAGE_BYTES,
    "SubmitMisbehaviorReport": _REPORT_BYTES,
}
"""Bytes of the longest request of each method."""


def api_methods(
    log: EnvelopeLog,
    hub: Hub,
    publish: Unary,
    heads: Unary,
    reports: MisbehaviorApi,
    limits: ServingLimits,
    metrics: NodeMetrics,
) -> Methods:
    """Return all methods: those that read use log and hub, ``publish`` takes payers' envelopes.

    ``heads`` answers QueryTopicHeads: it signs, which a process that only reads cannot.
    """
    reader = Reader(log, limits, metrics)
    comparer = LogComparer(log, limits)
    payer_reports = PayerReportsHandler(log, limits)
    subscriber = Subscriber(log, hub, limits, metrics)
    return Methods(
        unary={
            "QueryEnvelopes": reader.query_envelopes,
            "GetNewestEnvelope": reader.newest_envelope,
            "GetInboxIds": reader.inbox_ids,
            "PublishPayerEnvelopes": publish,
            "QueryMisbehaviorReports": reports.query_misbehavior_reports,
            "CompareRanges": comparer.compare_ranges,
            "QueryTopicHeads": heads,
            "QueryPayerReports": payer_reports.query_payer_reports,
        },
        streams={
            "SubscribeEnvelopes": subscriber.subscribe_envelopes,
            "SubscribeTopics": subscriber.subscribe_topics,
        },
        of_callers={"SubmitMisbehaviorReport": reports.submit_misbehavior_report},
        request_bytes=REQUEST_BYTES,
    )
