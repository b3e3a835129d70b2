"""Values as a reader sees them: exact, grouped, with their unit, and nothing that hides."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

from chainkit_jobs.cost.terminal import decimal_text

NOTHING: Final = "–"
THIN: Final = "\u202f"
"""Between the digits of a number, and before its sign: narrow, without a line break."""

ENVELOPE_SHOWN: Final = 1_024
"""Bytes of an envelope in the page; findings.jsonl has all bytes."""

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ETHER: Final = 18
_PRICE_DIGITS: Final = 3
_GWEI: Final = 9


def visible(value: Any) -> Any:
    r"""Spell out what would not show, or would turn the text around: ``\u202e``.

    Addresses of nodes, and parts of their wrong bytes, come from strangers.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(
        f"\\u{ord(letter):04x}" if unicodedata.category(letter) in _INVISIBLE else letter
        for letter in value
    )


def shorten(value: bytes | str | None) -> str:
    """Show the ends of a hash or of other long bytes."""
    text = hex_text(value)
    return text if len(text) <= 18 else f"{text[:10]}…{text[-6:]}"


def hex_text(value: bytes | str | None) -> str:
    """Return bytes as 0x hex, text unchanged."""
    if value is None:
        return NOTHING
    return "0x" + value.hex() if isinstance(value, bytes) else value


def text(value: Any) -> str:
    """Show a number that is a name, like an id."""
    return NOTHING if value is None else str(value)


def thousands(value: int | Decimal | None) -> str:
    """Group the digits of an integer or a decimal by narrow spaces."""
    return NOTHING if value is None else f"{value:,}".replace(",", THIN)


def hundredths(ratio: Decimal | None) -> str:
    """Show a ratio to two digits behind the point."""
    return NOTHING if ratio is None else _grouped(f"{ratio:.2f}")


def ether(wei: Decimal | int | None) -> str:
    """Show an amount of wei in ether, with every digit."""
    return NOTHING if wei is None else _grouped(decimal_text(int(wei), _ETHER))


def gwei(price: Decimal | None) -> str:
    """Show a price of gas, in wei with PRICE_DIGITS digits, in gwei with every digit."""
    if price is None:
        return NOTHING
    return _grouped(decimal_text(int(price.scaleb(_PRICE_DIGITS)), _GWEI + _PRICE_DIGITS))


def percent(share: Decimal | None) -> str:
    """Return a share, of at most 12 digits, in percent with all its digits."""
    return NOTHING if share is None else f"{decimal_text(int(share.scaleb(12)), 10)}{THIN}%"


def times(ratio: Decimal | None) -> str:
    """Show a ratio as a multiple with two digits behind the point."""
    return NOTHING if ratio is None else f"{ratio:.2f}{THIN}×"


def moment(second: int) -> str:
    """Show a block's time."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M UTC")


def size_range(row: Mapping[str, Any]) -> str:
    """Name a size class: its first and last size in bytes."""
    first, last = row["size_from"], row["size_below"] - 1
    return thousands(first) if first == last else f"{thousands(first)} to {thousands(last)}"


def blocks(first: int, last: int) -> str:
    """Name a range of blocks, both ends included."""
    return thousands(first) if first == last else f"{thousands(first)} to {thousands(last)}"


def plural(count: int, word: str) -> str:
    """Count things: ``1 finding``, ``2 findings``."""
    return f"{thousands(count)} {word}{'' if count == 1 else 's'}"


def sha256(value: bytes) -> str:
    """Return the digest of an envelope as served."""
    return hashlib.sha256(value).hexdigest()


def envelope_start(value: bytes) -> str:
    """Return the first ENVELOPE_SHOWN bytes in hex."""
    return value[:ENVELOPE_SHOWN].hex()


def _grouped(text: str) -> str:
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}".replace(",", THIN) + point + rest
