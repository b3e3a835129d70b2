"""The page for people: one file that asks for nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from chainkit_jobs.findings import MEANINGS, Code
from chainkit_jobs.plots import cost_plot, nodes_plot, timeline_plot

if TYPE_CHECKING:
    from chainkit_jobs.audit import Audit

SHOWN_FINDINGS: Final = 200
"""Rows of the table of findings; all of them stand in findings.jsonl."""

ENDPOINT_TRUSTED: Final = (
    "The chain export is what one endpoint, or another tool, said: no trusted block hash was "
    "given, so that headers, transactions and receipts were not proved. --trust does that."
)
OPERATOR_TRUSTED: Final = (
    "A node's export is what its operator handed over. That the node serves the same envelopes "
    "to its clients was not tested."
)


def render_report(summary: Mapping[str, Any], audit: Audit) -> str:
    """Return the whole page for an audit and its summary."""
    compared = [node for node in summary["nodes"] if node["compared"]]
    return render(
        summary,
        audit.findings,
        audit.gas,
        plots={
            "timeline": timeline_plot(audit.timeline, audit.timeline_step),
            "cost": cost_plot(audit.cost_sample) if audit.cost_sample else "",
            "nodes": nodes_plot(compared) if compared else "",
        },
    )


def render(
    summary: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
    gas: Sequence[Mapping[str, Any]],
    plots: Mapping[str, str],
) -> str:
    """Fill the template; everything but the plots, which are ours, is escaped."""
    environment = Environment(
        loader=PackageLoader("chainkit_jobs"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": shorten, "thousands": thousands, "size": size_range}
    return environment.get_template("report.html.j2").render(
        summary=summary,
        findings=findings[:SHOWN_FINDINGS],
        hidden_findings=max(0, len(findings) - SHOWN_FINDINGS),
        meanings={code.value: meaning.text for code, meaning in MEANINGS.items()},
        severities={code.value: MEANINGS[code].severity.value for code in Code},
        gas=gas,
        plots={name: Markup(svg) for name, svg in plots.items()},
        trusted=_taken_on_trust(summary["trust"]),
    )


def _taken_on_trust(trust: Mapping[str, Any] | None) -> list[str]:
    if trust is None:
        return [ENDPOINT_TRUSTED, OPERATOR_TRUSTED]
    source = f"That block {trust['block_hash']} is the chain's was told by whoever ran the audit."
    unproved = [f"Not proved in the chain export: {sentence}" for sentence in trust["not_proved"]]
    return [source, *unproved, OPERATOR_TRUSTED]


def shorten(value: bytes | str | None) -> str:
    """Show the ends of a hash or of other long bytes."""
    if value is None:
        return "–"
    text = "0x" + value.hex() if isinstance(value, bytes) else value
    return text if len(text) <= 18 else f"{text[:10]}…{text[-6:]}"


def thousands(value: object) -> str:
    """Group the digits of an integer or a decimal by thin spaces."""
    if value is None:
        return "–"
    return f"{value:,}".replace(",", "\u2009")


def size_range(row: Mapping[str, Any]) -> str:
    """Name a size class: its first and last size in bytes."""
    first, last = row["size_from"], row["size_below"] - 1
    return thousands(first) if first == last else f"{thousands(first)} – {thousands(last)}"
