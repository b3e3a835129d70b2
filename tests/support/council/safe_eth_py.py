"""Safe transactions as another implementation has them: PyPI's safe-eth-py."""

from __future__ import annotations

import sys
from functools import cache
from types import SimpleNamespace


@cache
def safe_eth_py() -> SimpleNamespace:
    """Return the package's classes; the import at the first call takes seconds."""
    limit = sys.getrecursionlimit()
    from safe_eth.safe import SafeTx
    from safe_eth.safe.multi_send import MultiSend
    from safe_eth.safe.safe_signature import SafeSignature

    # The EVM that comes with it raises the limit for itself. Hostile JSON, which is stopped by the
    # limit, would overflow the stack of the whole test process instead.
    sys.setrecursionlimit(limit)
    return SimpleNamespace(MultiSend=MultiSend, SafeSignature=SafeSignature, SafeTx=SafeTx)
