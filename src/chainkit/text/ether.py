"""Amounts of ether as people write and read them; all other code counts wei."""

from __future__ import annotations

import re
from typing import Final

from chainkit.errors import MalformedData

_DECIMALS: Final = 18
WEI_PER_ETHER: Final = 10**_DECIMALS

MAX_COST: Final = WEI_PER_ETHER // 10
"""Wei: the most that a transaction's gas may cost by default."""


def parse_ether(text: str) -> int:
    """Return the wei of a decimal number of ether, such as ``0.1``.

    Raises MalformedData for anything but digits with at most 18 behind a point.
    """
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text) is None:
        raise MalformedData("ether", "a decimal number such as 0.1", ascii(text))
    whole, _, rest = text.partition(".")
    return int(whole) * WEI_PER_ETHER + int(rest.ljust(_DECIMALS, "0"))


def ether_words(wei: int) -> str:
    """Write wei exactly, as ether and as wei: ``0.0015 ether (1,500,000,000,000,000 wei)``."""
    return f"{ether_text(wei)} ether ({wei:,} wei)"


def ether_text(wei: int) -> str:
    """Write wei as the number of ether that ``parse_ether`` reads."""
    whole, rest = divmod(wei, WEI_PER_ETHER)
    decimals = f"{rest:0{_DECIMALS}}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else str(whole)
