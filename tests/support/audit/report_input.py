"""The input of a report, small and by hand; everything that a stranger writes is hostile."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from chainkit_jobs.cost.digest import CostDigest
from chainkit_jobs.cost.headroom import BlockTotals, MessageTotals, headroom
from chainkit_jobs.cost.schema import RATIOS, TABLES
from chainkit_jobs.cost.variants import RULES, VARIANTS
from chainkit_jobs.findings import FINDINGS, MEANINGS, Code
from chainkit_jobs.reconcile.coverage import COVERAGE
from chainkit_jobs.report.page import ReportInput

EVIL = "<script>alert('&')</script>"
HIDDEN = "\u202e\u0007"
"""Characters that turn text around, or ring a bell: neither may reach the page unescaped."""

Row = dict[str, Any]


def summary(**changes: Any) -> Row:
    content: Row = {
        "assurance": {"complete": False, "lacking": ["not proved: the chain export"]},
        "outcome": "findings",
        "with_signatures": True,
        "with_tables": False,
        "tables_compared": None,
        "tool": "chainkit 0",
        "chain": {
            "chain_id": 31337,
            "genesis_hash": "0x" + "0e" * 32,
            "contracts": {"GroupMessages": "0x" + "11" * 20, EVIL: EVIL},
            "from_block": 1,
            "to_block": 20,
            "to_block_hash": "0x" + "ab" * 32,
            "manifest_sha256": "c0" * 32,
            "payloads": 8,
            "quarantined": 1,
        },
        "nodes": [node(100, http_address=EVIL), node(200, compared=False)],
        "refused": [],
        "trust": None,
        "findings_total": 1,
        "not_compared": [f"node 200: {EVIL}{HIDDEN}"],
    }
    return content | changes


def node(node_id: int, **changes: Any) -> Row:
    content: Row = {
        "node_id": node_id,
        "public_key": "0x04" + "aa" * 64,
        "http_address": "https://node.example",
        "is_enabled": True,
        "established": {"one endpoint": 2, "receipts": 8},
        "manifest_sha256": "d0" * 32,
        "from_block": 1,
        "to_block": 18,
        "to_block_hash": "0x" + "ab" * 32,
        "compared": True,
        "expected": 7,
        "served": 7,
        "matched": 6,
        "undecided": 0,
        "findings": {"ENVELOPE_ALTERED": 1},
    }
    return content | changes


def refused(**changes: Any) -> Row:
    content: Row = {"node_id": None, "folder": "exports/c", "reason": "export exports/c: torn"}
    return content | changes


TRUST = {
    "block_hash": "0x" + "5f" * 32,
    "proved": {"blocks": 20, "transactions": 9, "receipts": 9, "logs": 12345},
    "not_proved": [EVIL],
}


def finding(**changes: Any) -> Row:
    row: Row = dict.fromkeys(FINDINGS.names)
    row |= {
        "finding_id": "f" * 64,
        "code": "ENVELOPE_ALTERED",
        "node_id": 100,
        "originator_id": 0,
        "sequence_id": Decimal(3),
        "block_number": 12,
        "log_index": 4,
        "transaction_hash": b"\x01" * 32,
        "expected_digest": b"\x02" * 32,
        "served_digest": b"\x03" * 32,
        "served_transaction_hash": b"\x01" * 32,
        "envelope": b"\xee" * 450,
        "detail": EVIL + HIDDEN,
    }
    row |= changes
    return row | {"severity": MEANINGS[Code(row["code"])].severity.value}


def coverage_row(first_block: int, **counts: int) -> Row:
    row = dict.fromkeys(COVERAGE.names, 0)
    row |= {"node_id": 100, "first_block": first_block, "last_block": first_block, "matched": 1}
    row |= counts
    row["expected"] = row["matched"] + row["missing"] + row["wrong"] + row["outside"]
    return row


def cost_row(table: str, **values: Any) -> Row:
    """A row of cost/schema.TABLES with 1,000 of everything, but for what is given."""
    row: Row = dict.fromkeys(TABLES[table].names, 1000)
    row |= {name: Decimal("1.500000") for name in RATIOS if name in row}
    row |= {name: Decimal("0.250000000000") for name in ("l1_share", "limit_share") if name in row}
    return row | values


def costs(**changes: Any) -> CostDigest:
    """The costs of a chain that has one row in every table."""
    hour = {"hour": 1_700_000_400, "price": Decimal("1000000001.500")}
    variants = [
        {"variant": name, "rules": rules, "gas": 1000, "gas_ratio": Decimal("0.5"), "capped": 0}
        for name in VARIANTS
        for rules in RULES
    ]
    busy = {"messages": 5, "gas": 7, "number": 12, "hour": 7200, "day": 0}
    parts: Row = {
        "total": cost_row("total", paid_wei=Decimal(10**20 + 1)),
        "contracts": (cost_row("contracts", contract=EVIL),),
        "sizes": (cost_row("sizes", contract="GroupMessages", size_from=256, size_below=512),),
        "functions": (cost_row("functions", contract="GroupMessages", function="pause()"),),
        "payers": (cost_row("payers", payer=b"\x44" * 20),),
        "counts": {"functions": 1, "payers": 31},
        "time": "hour",
        "times": (cost_row("hours", **hour),),
        "samples": (
            cost_row(
                "samples", contract="$\\frac{漢" + EVIL + HIDDEN, payload_bytes=300, gas=50_000
            ),
        ),
        "variants": tuple(variants),
        "headroom": headroom(
            BlockTotals(101, 1000, 1200, 101 * 30_000_000, 101), MessageTotals(50, 2100, 2000, 60)
        ),
        "busiest": {"block": busy, "hour": busy},
    }
    return CostDigest(**(parts | changes))


def report_input(**changes: Any) -> ReportInput:
    """The input of a report that draws one figure only: the figures of costs take time."""
    parts: Row = {
        "summary": summary(),
        "findings": [finding()],
        "coverage": [coverage_row(10), coverage_row(12, matched=0, wrong=1)],
        "costs": None,
    }
    return ReportInput(**(parts | changes))
