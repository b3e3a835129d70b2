"""Exact integers to decimals with a fixed number of digits. Nothing here is ever a float."""

from __future__ import annotations

from decimal import Decimal

from chainkit.errors import StoreError

_WIDEST = 38


def ratio(numerator: int, denominator: int, digits: int) -> Decimal | None:
    """Return numerator / denominator with ``digits`` digits behind the point, half rounded up.

    Both are whole and not negative; None where the denominator is 0. Raises StoreError where the
    result has more than 38 digits, as a column of the outputs holds.
    """
    if denominator == 0:
        return None
    scaled = (2 * numerator * 10**digits + denominator) // (2 * denominator)
    if scaled >= 10**_WIDEST:
        expected = f"a ratio of at most {_WIDEST - digits} digits before the point"
        raise StoreError("chain export", expected, f"{numerator} / {denominator}")
    # From text: arithmetic on decimals would round to the context's 28 digits.
    return Decimal(f"{scaled}e-{digits}")
