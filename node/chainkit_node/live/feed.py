"""The indexer's steps, as the open streams must know them. Runs on the indexer's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from chainkit.errors import ChainkitError, StoreUnavailable
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.types import RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.types import Selection

_MOST_PUSHED: Final = 1000
_MOST_PUSHED_BYTES: Final = 16 << 20
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
        missing = {each: last - self._known.get(each, 0) for each, last in judged.items()}
        count = sum(missing.values())
        rows = self._read(missing, judged) if 0 < count <= _MOST_PUSHED else None
        if rows is not None:
            self._handover.call(self._hub.publish, rows, self._log.refused(rows))
        elif count:
            self._handover.call(self._hub.skip, tuple(judged))
        self._known = judged

    def _read(
        self, missing: Mapping[int, int], judged: Mapping[int, int]
    ) -> Sequence[StoredEnvelope] | None:
        """Return what is missing, or None where that is too large."""
        found: list[StoredEnvelope] = []
        for originator_id, count in missing.items():
            cursor = {originator_id: self._known.get(originator_id, 0)}
            selection = Selection(originator_ids=frozenset([originator_id]), cursor=cursor)
            page = self._log.page(selection, max(count, 1), _MOST_PUSHED_BYTES)
            if len(page.rows) < count and not page.is_last:
                return None
            # An id may have no envelope: then the page goes beyond what was judged.
            found += [row for row in page.rows if row.sequence_id <= judged[originator_id]]
        return found
