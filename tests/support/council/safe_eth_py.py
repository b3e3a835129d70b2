"""Safe transactions as another implementation has them: PyPI's safe-eth-py."""

from __future__ import annotations

import sys

_LIMIT = sys.getrecursionlimit()

from safe_eth.safe import SafeTx  # noqa: E402
from safe_eth.safe.multi_send import MultiSend  # noqa: E402
from safe_eth.safe.safe_signature import SafeSignature  # noqa: E402

# The EVM that comes with it raises the limit for itself. Hostile JSON, which is stopped by the
# limit, would overflow the stack of the whole test process instead.
sys.setrecursionlimit(_LIMIT)

__all__ = ["MultiSend", "SafeSignature", "SafeTx"]
