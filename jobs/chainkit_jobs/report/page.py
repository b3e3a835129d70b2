"""The whole page: what an audit left, arranged and filled into the templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from chainkit_jobs.cost.digest import CostDigest
from chainkit_jobs.findings import Severity
from chainkit_jobs.report import formats
from chainkit_jobs.report.compared import tables_compared
from chainkit_jobs.report.costs import VARIANT_WORDS, cost_pictures, cost_problem
from chainkit_jobs.report.coverage_figure import Layout, Strip, coverage_figure
from chainkit_jobs.report.drawing import drawn
from chainkit_jobs.report.findings import findings_matrix
from chainkit_jobs.report.trust import taken_on_trust

SECTIONS: Final = {
    "trust": "Trust anchor",
    "nodes": "Nodes",
    "coverage": "Coverage",
    "findings": "Findings",
    "not-compared": "Data not compared",
    "cost": "Cost of the chain",
    "inputs": "Inputs and digests",
}
"""The page's headings, by the anchors of its links."""

MOST_GAPS: Final = 200
"""Rows of the coverage that the page spells out; coverage.jsonl has all rows."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Everything that the page shows; the same input gives the same bytes."""

    summary: Row
    """In the form of outputs.summarize."""
    findings: Sequence[Row]
    """Columns of findings.FINDINGS, in their order."""
    coverage: Sequence[Row]
    """Columns of coverage.COVERAGE, by node and block."""
    costs: CostDigest | str | None
    """The chain's costs, the reason why they are not known, or None where they were not
    requested."""


def render_report(report: ReportInput) -> str:
    """Return the page as HTML. The page loads nothing, runs no script, and escapes all text."""
    summary = report.summary
    compared = [node["node_id"] for node in summary["nodes"] if node["compared"]]
    matrix = findings_matrix(report.findings, compared)
    gaps = [row for row in report.coverage if row["matched"] != row["expected"] or row["wrong"]]
    costs = report.costs if isinstance(report.costs, CostDigest) else None
    has_costs = costs is not None and costs.total["transactions"] > 0
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            sections=SECTIONS,
            severities=_severities(report.findings),
            matrix=matrix,
            coverage=_coverage_pictures(summary, report.coverage),
            gaps=gaps[:MOST_GAPS],
            hidden_gaps=max(0, len(gaps) - MOST_GAPS),
            tables_compared=tables_compared,
            trusted=taken_on_trust(summary["trust"]),
            costs=costs,
            cost_problem=cost_problem(report.costs),
            cost_pictures=cost_pictures(costs) if costs is not None and has_costs else {},
            variant_words=VARIANT_WORDS,
            envelope_shown=formats.ENVELOPE_SHOWN,
            severity_badge=_severity_badge,
            severity_of=matrix.severity_of,
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("chainkit_jobs", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=formats.visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "blocks": formats.blocks,
        "envelope_start": formats.envelope_start,
        "ether": formats.ether,
        "gwei": formats.gwei,
        "hex_text": formats.hex_text,
        "hundredths": formats.hundredths,
        "moment": formats.moment,
        "percent": formats.percent,
        "plural": formats.plural,
        "sha256": formats.sha256,
        "shorten": formats.shorten,
        "size_range": formats.size_range,
        "text": formats.text,
        "thousands": formats.thousands,
        "times": formats.times,
    }
    return environment


def _severities(findings: Sequence[Row]) -> dict[str, int]:
    """Count the findings by severity, the gravest first."""
    counts = Counter(row["severity"] for row in findings)
    return {each.value: counts[each] for each in Severity if counts[each]}


def _severity_badge(severity: Severity) -> Markup:
    return Markup(f'<span class="severity {severity.value}">{severity.value}</span>')


def _coverage_pictures(summary: Row, coverage: Sequence[Row]) -> dict[str, Markup]:
    """Draw the coverage, for a wide screen and for a narrow one; nothing where no node is."""
    chain = summary["chain"]
    first, last = chain["from_block"], chain["to_block"]
    bins: dict[int, list[Row]] = {}
    for row in coverage:
        bins.setdefault(row["node_id"], []).append(row)
    strips = [_strip(node, bins, first, last) for node in summary["nodes"]]
    if not strips:
        return {}
    described = "; ".join(
        f"node {strip.node_id}: {strip.total('matched')} matched, "
        f"{strip.total('missing')} missing, {strip.total('wrong')} wrong, "
        f"{strip.total('outside')} not compared"
        for strip in strips
    )
    draw = partial(coverage_figure, strips, first, last)
    return {
        layout.value: drawn(f"coverage-{layout}", described, partial(draw, layout))
        for layout in Layout
    }


def _strip(node: Row, bins: Mapping[int, Sequence[Row]], first: int, last: int) -> Strip:
    node_id = node["node_id"]
    if not node["compared"]:
        return Strip(node_id, None, None, ())
    first, last = max(first, node["from_block"]), min(last, node["to_block"])
    return Strip(node_id, first, last, bins.get(node_id, ()))
