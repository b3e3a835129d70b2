"""The full names of the gRPC services of nodes and gateways: XIP-49's, and three of our own."""

from __future__ import annotations

from typing import Final

MOST_MESSAGE_BYTES: Final = 25 << 20
"""Bytes of one request, answer or frame: today's clients take as many."""

MESSAGE_PACKAGE: Final = "xmtp.xmtpv4.message_api"
REPLICATION_API: Final = f"{MESSAGE_PACKAGE}.ReplicationApi"
MISBEHAVIOR_API: Final = f"{MESSAGE_PACKAGE}.MisbehaviorApi"
PAYER_API: Final = "xmtp.xmtpv4.payer_api.PayerApi"
LOG_API: Final = "chainkit.node_api.v1.LogApi"
TOPIC_API: Final = "chainkit.node_api.v1.TopicApi"
BACKUP_API: Final = "chainkit.gateway_api.v1.BackupApi"
PAYER_REPORT_API: Final = "chainkit.node_api.v1.PayerReportApi"

PUBLISH_PAYER_ENVELOPES: Final = f"/{REPLICATION_API}/PublishPayerEnvelopes"
QUERY_ENVELOPES: Final = f"/{REPLICATION_API}/QueryEnvelopes"
SUBSCRIBE_ENVELOPES: Final = f"/{REPLICATION_API}/SubscribeEnvelopes"
GET_INBOX_IDS: Final = f"/{REPLICATION_API}/GetInboxIds"
SUBMIT_REPORT: Final = f"/{MISBEHAVIOR_API}/SubmitMisbehaviorReport"
QUERY_REPORTS: Final = f"/{MISBEHAVIOR_API}/QueryMisbehaviorReports"
PUBLISH_CLIENT_ENVELOPES: Final = f"/{PAYER_API}/PublishClientEnvelopes"
GRANT_UPLOAD: Final = f"/{BACKUP_API}/GrantUpload"
COMPARE_RANGES: Final = f"/{LOG_API}/CompareRanges"
QUERY_TOPIC_HEADS: Final = f"/{TOPIC_API}/QueryTopicHeads"
QUERY_PAYER_REPORTS: Final = f"/{PAYER_REPORT_API}/QueryPayerReports"
