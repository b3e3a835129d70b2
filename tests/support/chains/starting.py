"""A chain's program that was started: it answers after a while."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.errors import ChainError

_PATIENCE_SECONDS: Final = 60.0


def answering_endpoint(url: str, log: Path) -> Endpoint:
    """Return the endpoint once it answers; fail with the program's log where it does not."""
    endpoint = Endpoint.connect(url, retry=RetryPolicy(attempts=1))
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            endpoint.chain_id()
            return endpoint
        except ChainError:
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
