"""The nonce of the payer's next transaction, which no endpoint alone may raise.

A transaction with a nonce that is too high is never mined, nor is any later one of this gateway,
whose journal counts on from there. So an endpoint that says that more was sent than this gateway
knows of is believed where an endpoint of another host says so, too, or where it was mined.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from chainkit.chain import Endpoint
from chainkit.errors import ChainError, Unconfirmed
from chainkit.service.log_lines import LogEvent, log_event


def next_nonce(endpoint: Endpoint, others: Iterable[Endpoint], account: str, own: int) -> int:
    """Return the nonce of an account's next transaction; ``own`` follows the journal's highest one.

    ``others`` are endpoints of other hosts than the first one. Raises Unconfirmed where none of
    them answers, and the endpoint knows of transactions that are neither mined nor the journal's;
    and what the endpoint raises.
    """
    claimed = endpoint.pending_transaction_count(account)
    if claimed <= own:
        return own
    counts = [count for each in others if (count := _pending_count(each, account)) is not None]
    if not counts:
        mined = endpoint.transaction_count(account, endpoint.head().reference)
        if claimed > max(mined, own):
            expected = f"at most {max(mined, own)}, by the mined ones and this gateway's own"
            got = f"{claimed}, which no second endpoint confirms"
            raise Unconfirmed(f"{endpoint.name}: transactions of {account}", expected, got)
        return claimed
    confirmed = max(own, min(claimed, max(counts)))
    if confirmed < claimed:
        text = f"{endpoint.name}: says nonce {claimed}, which no second endpoint confirms"
        text += f": {confirmed} is used"
        log_event(LogEvent("nonce_unconfirmed", text, level=logging.WARNING))
    return confirmed


def _pending_count(endpoint: Endpoint, account: str) -> int | None:
    try:
        return endpoint.pending_transaction_count(account)
    except ChainError:
        return None
