"""Asks a node's public API (XIP-49 §3.3.3), as a polite stranger who trusts no answer.

One request at a time. A node that is busy is asked again after growing pauses, and for half as many
envelopes; a node that stays away ends the export, which the next run continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Self

import grpc
from google.protobuf.message import DecodeError

from chainkit.chain.backoff import Backoff
from chainkit.errors import (
    InconsistentAnswer,
    RateLimited,
    RefusedRequest,
)
from chainkit.nodes.channel import connect_blocking
from chainkit.nodes.outcomes import as_endpoint_error
from chainkit.protocol.envelope_queries import page_behind
from chainkit.protocol.methods import QUERY_ENVELOPES
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

MOST_PAGE_ROWS: Final = 1_000
"""Envelopes of an answer: no node of ours gives more at once."""

ATTEMPTS: Final = 8
"""Attempts for one page before the node counts as away."""

_PAUSES: Final = Backoff(first_seconds=0.5, longest_seconds=30.0, jitter=0.5)
_SECONDS: Final = 60.0
"""Time that an answer may take."""

Ask = Callable[[bytes], bytes]
"""Sends a QueryEnvelopesRequest and returns the answer. Raises grpc.RpcError."""


class NodeApi:
    """One address, asked about the originators of the chain."""

    def __init__(
        self,
        name: str,
        ask: Ask,
        page_rows: int = MOST_PAGE_ROWS,
        sleep: Callable[[float], None] = time.sleep,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the address for errors, and the connection; ``sleep`` takes seconds."""
        self.name = name
        self._ask = ask
        self._page_rows = page_rows
        self._sleep = sleep
        self._close = close

    @classmethod
    def connect(cls, url: str, page_rows: int = MOST_PAGE_ROWS) -> Self:
        """Take ``http://host[:port]`` or ``https://host[:port]``; nothing is connected yet.

        Raises ConfigurationError for anything else.
        """
        channel = connect_blocking("URL of the node", url)
        query: Any = channel.unary_unary(QUERY_ENVELOPES)
        return cls(
            url, lambda request: query(request, timeout=_SECONDS), page_rows, close=channel.close
        )

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the connection."""
        self._close()

    @property
    def page_rows(self) -> int:
        """Envelopes that are asked for at once: fewer after the node refused more."""
        return self._page_rows

    def page(self, after: int, originator_id: int = BLOCKCHAIN_ORIGINATOR_ID) -> list[bytes]:
        """Return the node's envelopes of an originator behind a sequence id, a bounded number.

        Raises EndpointUnavailable or RateLimited where the node does not answer after ATTEMPTS,
        RefusedRequest where the node refuses, InconsistentAnswer where the answer is no such page.
        """
        for attempt in range(ATTEMPTS):
            try:
                return self._parsed(self._ask(self._request(after, originator_id)))
            except grpc.RpcError as error:
                place = f"asked {ATTEMPTS} times"
                failure = as_endpoint_error(self._subject, "a page of envelopes", error, place)
                if isinstance(failure, RefusedRequest) or attempt == ATTEMPTS - 1:
                    raise failure from error
                if isinstance(failure, RateLimited):
                    # Too much at once: for the node, or for the limit of an answer's bytes.
                    self._page_rows = max(1, self._page_rows // 2)
            self._sleep(_PAUSES.pause(attempt))
        raise AssertionError("unreachable")

    def _request(self, after: int, originator_id: int) -> bytes:
        return page_behind(originator_id, after, self._page_rows).SerializeToString()

    def _parsed(self, answer: bytes) -> list[bytes]:
        try:
            envelopes = Envelopes.FromString(answer).envelopes
        except DecodeError as error:
            got = f"{len(answer)} other bytes"
            raise InconsistentAnswer(self._subject, "a page of envelopes", got) from error
        if len(envelopes) > self._page_rows:
            expected = f"at most the {self._page_rows} envelopes that were asked for"
            raise InconsistentAnswer(self._subject, expected, len(envelopes))
        return list(envelopes)

    @property
    def _subject(self) -> str:
        return f"node {self.name}"
