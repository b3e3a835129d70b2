"""The payer reports of real nodes, as others get them."""

from __future__ import annotations

from collections.abc import Sequence

from chainkit.protocol.payer_reports import (
    SignedReport,
    is_attested_by,
    needed_signatures,
    read_report,
)
from chainkit.protocol.proto import node_api_pb2
from support.network.real_nodes import RealNode

PAYER_REPORT_API = "chainkit.node_api.v1.PayerReportApi"


def payer_reports(node: RealNode, keys: dict[int, bytes], originator_id: int) -> list[SignedReport]:
    """All reports about an originator that a node serves, verified."""
    request = node_api_pb2.QueryPayerReportsRequest()
    request.queries.add(originator_node_id=originator_id)
    answer = node.api.call("QueryPayerReports", request.SerializeToString(), PAYER_REPORT_API)
    reports = node_api_pb2.QueryPayerReportsResponse.FromString(answer).reports
    return [read_report(each, keys) for each in reports]


def books_agree(nodes: Sequence[RealNode]) -> bool:
    """Whether all nodes have the same bytes of reports about each, attested up to the last id."""
    keys = {each.node_id: each.key.public_key for each in nodes}
    for originator in nodes:
        books = [payer_reports(node, keys, originator.node_id) for node in nodes]
        signed = [[each.report.unsigned for each in reports] for reports in books]
        last = len(originator.holds(originator.node_id))
        is_equal = signed == [signed[0]] * len(signed)
        if not is_equal or not all(_is_covered(reports, last, keys) for reports in books):
            return False
        check_follow(books[0])
    return True


def check_follow(reports: Sequence[SignedReport]) -> None:
    """Check that each id is in one report, and billed to one payer or to nobody."""
    expected = 1
    for each in reports:
        each.report.check()
        assert each.report.first_id == expected
        expected = each.report.last_id + 1


def _is_covered(reports: Sequence[SignedReport], last: int, keys: dict[int, bytes]) -> bool:
    if not reports or reports[-1].report.last_id != last:
        return False
    return all(_is_attested(each, keys) for each in reports)


def _is_attested(signed: SignedReport, keys: dict[int, bytes]) -> bool:
    signers = {signed.report.originator_id}
    for node_id, signature in signed.attestations.items():
        assert is_attested_by(signed.report, node_id, signature, keys[node_id])
        signers.add(node_id)
    return len(signers) >= needed_signatures(len(keys))
