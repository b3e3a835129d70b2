"""How much at once: what the command line shows without loading all that exports."""

from typing import Final

DEFAULT_RANGE_BLOCKS: Final = 10_000
"""Blocks per file; a killed run loses no more than one range."""

DEFAULT_PARALLEL: Final = 4
HIGHEST_PARALLEL: Final = 16
"""Requests in flight: a public endpoint refuses more."""
