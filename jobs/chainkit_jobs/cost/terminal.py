"""The summary as lines for a terminal, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from chainkit_jobs.cost.cuts import PERCENTS
from chainkit_jobs.cost.variants import RULES

_NONE: Final = "-"
_GWEI: Final = 9
_ETHER: Final = 18
_LABEL: Final = 16
_NUMBER: Final = 20


def cost_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Give the lines: totals, percentiles, variants, headroom and the busiest times."""
    chain, total = summary["chain"], summary["total"]
    yield (
        f"{total['messages']} messages in {total['transactions']} transactions, blocks "
        f"{chain['from_block']} to {chain['to_block']}"
    )
    yield ""
    yield from _totals(total)
    yield ""
    yield from _variants(summary["variants"])
    yield ""
    yield from _headroom(summary["headroom"])
    yield ""
    yield from _busiest(summary["busiest"])


def _totals(total: Mapping[str, Any]) -> Iterator[str]:
    paid, price = decimal_text(total["paid_wei"], _ETHER), total["price"]
    # The price in thousandths of a wei: its digits, without the point.
    gwei = (
        None if price is None else decimal_text(int(format(price, "f").replace(".", "")), _GWEI + 3)
    )
    yield _line("gas", total["gas"], "per byte", total["gas_per_byte"])
    yield _line("paid, ether", paid, "for layer 1", total["l1_share"])
    yield _line("failed", total["failed"], "gwei a gas", gwei)
    yield _line("gas of these", total["failed_gas"], "messages shared", total["shared_messages"])
    yield _columns("", ("p50", "p95", "p99"))
    for what in ("gas", "wei"):
        yield _columns(f"{what} a message", [total[f"{what}_p{p}"] for p in PERCENTS])


def _variants(variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield _columns("as", [f"{what}, {rules}" for what in ("gas", "of paid") for rules in RULES])
    by_name: dict[str, dict[str, Any]] = {}
    for row in variants:
        by_name.setdefault(row["variant"], {})[row["rules"]] = row
    for name, rows in by_name.items():
        figures = [rows[rules][what] for what in ("gas", "gas_ratio") for rules in RULES]
        yield _columns(name, figures)


def _headroom(headroom: Mapping[str, Any]) -> Iterator[str]:
    yield _columns("messages per", ("observed", "limit at mean", "limit at p95"))
    for period, rates in headroom["messages_per"].items():
        figures = [rates[name] for name in ("observed", "limit_at_mean", "limit_at_p95")]
        yield _columns(period, figures)
    own, used = _text(headroom["own_share"]), _text(headroom["used_share"])
    yield f"share of the gas limit: {own} by our contracts, {used} by all"


def _busiest(busiest: Mapping[str, Any]) -> Iterator[str]:
    for what, key in (("block", "number"), ("hour", "hour"), ("day", "day")):
        row = busiest[what]
        if row is not None:
            place = row[key] if what == "block" else _time(row[key])
            yield f"busiest {what}: {place}, {row['messages']} messages, {row['gas']} gas"


def decimal_text(amount: int, digits: int) -> str:
    """Return amount / 10**digits exactly, without zeros at the end."""
    whole, rest = divmod(int(amount), 10**digits)
    fraction = f"{rest:0{digits}}".rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def _line(name: str, value: Any, other: str, second: Any) -> str:
    left = f"{name:<{_LABEL}}{_text(value):>{_NUMBER}}"
    return f"{left}   {other:<{_LABEL}}{_text(second):>{_NUMBER}}"


def _columns(label: str, values: Iterable[Any]) -> str:
    return f"{label:<{_LABEL}}" + "".join(f"{_text(value):>{_NUMBER}}" for value in values)


def _text(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    return _NONE if value is None else str(value)


def _time(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M UTC")
