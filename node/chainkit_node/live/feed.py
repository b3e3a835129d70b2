"""The indexer's steps, as the open streams must know them. Runs on the indexer's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from chainkit.errors import ChainkitError, StoreError
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.types import Advanced, RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.hub import Hub
from chainkit_node.types import Selection

_MOST_PUSHED: Final = 1000
"""Envelopes of one step that are handed to the streams; of more, each reads what it wants."""


class ChainFeed:
    """An observer of the indexer's loop that tells the hub what each step committed."""

    def __init__(self, log: EnvelopeLog, hub: Hub, loop: asyncio.AbstractEventLoop) -> None:
        """Begin at the database's cursor: each stream reads for itself what lies below it."""
        self._log = log
        self._hub = hub
        self._loop = loop
        self._known = dict(log.chain_cursor())

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Hand on what a step committed or took back."""
        if isinstance(result, RolledBack):
            self._known = dict(self._log.chain_cursor())
            self._call(self._hub.retract, dict(self._known))
        if isinstance(result, Advanced):
            if result.envelopes:
                self._hand_on(result)
            self._known = dict(result.sequence_ids)

    def failed(self, error: ChainkitError) -> None:
        """Nothing was committed."""

    def _hand_on(self, result: Advanced) -> None:
        rows = self._committed(result) if result.envelopes <= _MOST_PUSHED else None
        if rows is None:
            self._call(self._hub.skip, tuple(result.sequence_ids))
        else:
            self._call(self._hub.publish, rows)

    def _committed(self, result: Advanced) -> Sequence[StoredEnvelope] | None:
        committed = Selection(
            originator_ids=frozenset(result.sequence_ids), cursor=dict(self._known)
        )
        try:
            return self._log.page(committed, result.envelopes)
        except StoreError:
            # The loop meets it, too; the streams read again what they want.
            return None

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)
