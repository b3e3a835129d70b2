"""The indexer's steps, as the open streams must know them. Runs on the indexer's thread."""

from __future__ import annotations

from typing import Final

from chainkit.errors import ChainkitError, StoreUnavailable
from chainkit_indexer.types import RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.types import Selection

_MOST_PUSHED: Final = 1000
"""Envelopes of one step that are handed to the streams; of more, each reads what it wants."""


class ChainFeed:
    """An observer of the indexer's loop that tells the hub what each step committed.

    It goes as far as the identity updates were judged. A database that is away is asked again at
    the next step: nothing is handed on twice, or forgotten.
    """

    def __init__(self, log: EnvelopeLog, hub: Hub, handover: Handover) -> None:
        """Begin where the updates were judged: each stream reads for itself what lies below."""
        self._log = log
        self._hub = hub
        self._handover = handover
        self._known = dict(log.judged_cursor())
        self._ancestor: int | None = None

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Hand on what was committed or taken back."""
        if isinstance(result, RolledBack):
            number = result.cursor.number
            self._ancestor = number if self._ancestor is None else min(number, self._ancestor)
        try:
            if self._ancestor is not None:
                self._take_back(self._ancestor)
            self._hand_on()
        except StoreUnavailable:
            # The loop meets it, too, and says so.
            return

    def failed(self, error: ChainkitError) -> None:
        """Nothing was committed."""

    def _take_back(self, block_number: int) -> None:
        ancestor = dict(self._log.cursor_at(block_number))
        self._handover.call(self._hub.retract, ancestor)
        self._known = {each: min(last, ancestor.get(each, 0)) for each, last in self._known.items()}
        self._ancestor = None

    def _hand_on(self) -> None:
        judged = dict(self._log.judged_cursor())
        count = sum(last - self._known.get(each, 0) for each, last in judged.items())
        if count > _MOST_PUSHED:
            self._handover.call(self._hub.skip, tuple(judged))
        elif count:
            selection = Selection(originator_ids=frozenset(judged), cursor=dict(self._known))
            rows = [
                row
                for row in self._log.page(selection, count)
                if row.sequence_id <= judged[row.originator_id]
            ]
            self._handover.call(self._hub.publish, rows, self._log.refused(rows))
        self._known = judged
