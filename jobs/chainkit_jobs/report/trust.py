"""The assumptions of the report, in whole sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ENDPOINT_TRUSTED: Final = (
    "The chain export is what one endpoint, or another tool, said: no trusted block hash was "
    "given, so that headers, transactions and receipts were not proved. --trust does that."
)
OPERATOR_TRUSTED: Final = (
    "A node's export is what its operator handed over. That the node serves the same envelopes "
    "to its clients was not tested."
)


def taken_on_trust(trust: Mapping[str, Any] | None) -> list[str]:
    """Return a sentence for each thing that nothing in this audit proves.

    ``trust`` is of the audit's summary.
    """
    if trust is None:
        return [ENDPOINT_TRUSTED, OPERATOR_TRUSTED]
    source = f"That block {trust['block_hash']} is the chain's was told by whoever ran the audit."
    return [source, OPERATOR_TRUSTED]
