"""How long a padded file is: its length tells little of the number of messages (Padmé).

PURBs (Nikitin and others, 2019) round a length up so that of its binary digits only as many stay as
the number of digits has. At most 7 % are added, and files of all lengths up to L share a number of
lengths that grows with log log L.
"""

from __future__ import annotations

from typing import Final

LEAST_LENGTH: Final = 4096
"""Bytes: short histories all have this length."""


def padded_length(length: int) -> int:
    """Return the least allowed length that is not below a length in bytes."""
    length = max(length, LEAST_LENGTH)
    exponent = length.bit_length() - 1
    zeros = exponent - exponent.bit_length()
    mask = (1 << zeros) - 1
    return (length + mask) & ~mask
