"""The tables beside the envelopes that an audit compared, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from chainkit.text.counting import counted

_WORDS: Final = {
    "envelopes": "other columns",
    "quarantine": "quarantine",
    "journal": "journal",
    "registry_updates": "the registry's history",
}


def tables_compared(tables: Mapping[str, Sequence[int]]) -> str:
    """Return for how many nodes each table was compared; ``tables`` is of the audit's summary."""
    parts = [f"{words} of {counted(len(tables[table]), 'node')}" for table, words in _WORDS.items()]
    return f"{', '.join(parts)}, and the manifests of all nodes compared"
