"""Reports the loop's work to a person: log events, and a progress bar while it catches up."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import click

from chainkit.chain import EndpointState, EndpointStatus, NoEndpointAvailable
from chainkit.errors import ChainkitError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.types import BlockReference
from chainkit_indexer.monitoring.progress import Pace, RateMeter, blocks_to_go, duration
from chainkit_indexer.types import Advanced, Provenance, RolledBack, StepResult

CATCHING_UP_BLOCKS: Final = 64
"""With more blocks than these to go, single pages are no news: the pace is."""

PROGRESS_SECONDS: Final = 10.0
"""Between two lines about the pace, where there is no terminal."""


def describe(result: StepResult) -> str:
    """Describe in one line what a step did."""
    return event_of_result(result).text


def event_of_result(result: StepResult) -> LogEvent:
    """Return what a step did, for the log."""
    if isinstance(result, Advanced):
        return _advanced(result)
    if isinstance(result, RolledBack):
        text = (
            f"reorg {result.reorg_id}: {result.depth} blocks taken back to {result.cursor}, "
            f"{result.retracted} payloads retracted"
        )
        about = {"reorg": result.reorg_id, "depth": result.depth, "retracted": result.retracted}
        fields = _block(result.cursor) | about
        return LogEvent("rolled_back", text, fields, logging.WARNING, is_news=True)
    head = result.head
    if head.number < result.cursor.number:
        text = f"waiting: head {head.reference} is below the cursor {result.cursor}"
        return LogEvent("waiting", text, _block(result.cursor) | {"head": head.number})
    if head.number > result.cursor.number:
        text = f"idle at the final block {result.cursor}, below the head {head.reference}"
    else:
        text = f"idle at the head {result.cursor}"
    return LogEvent("idle", text, _block(result.cursor) | {"head": head.number})


def _advanced(result: Advanced) -> LogEvent:
    several = "" if result.from_block == result.cursor.number else f"s {result.from_block} to"
    counts = f"{result.envelopes} envelopes, {result.quarantined} quarantined"
    if result.left_out:
        counts += f", {result.left_out} left out (sequence id repeated or out of range)"
    if result.established is not Provenance.RECEIPTS:
        counts += f", by {result.established}"
    fields = _block(result.cursor) | {
        "from_block": result.from_block,
        "head": result.head.number,
        "final_block": result.final_block,
        "envelopes": result.envelopes,
        "quarantined": result.quarantined,
        "left_out": result.left_out,
        "established": str(result.established),
    }
    text = f"block{several} {result.cursor}: {counts}"
    return LogEvent("advanced", text, fields, is_news=True)


def event_of_error(error: ChainkitError, is_fatal: bool = False) -> LogEvent:
    """Return an error for the log; after one that is not fatal the step is tried again."""
    fields = {
        "error": type(error).__name__,
        "subject": str(error.subject),
        "expected": str(error.expected),
        "got": str(error.got),
        **({"place": error.place} if error.place else {}),
    }
    if is_fatal:
        return LogEvent("stopped", f"stopped: {error}", fields, logging.ERROR)
    return LogEvent("retrying", f"retrying: {error}", fields, logging.WARNING)


def _block(block: BlockReference) -> dict[str, Any]:
    return {"block": block.number, "hash": "0x" + block.hash.hex()}


def narrate_start(endpoints: Sequence[EndpointStatus]) -> None:
    """Warn of endpoints that were skipped at the start: nothing else would show a typo in a URL."""
    for endpoint in endpoints:
        if endpoint.state is not EndpointState.AVAILABLE:
            kinds = ", ".join(endpoint.errors)
            text = f"starting without {endpoint.name}: {kinds}; it is asked again later"
            fields = {"endpoint": endpoint.name, "kinds": list(endpoint.errors)}
            log_event(LogEvent("starting_without", text, fields, logging.WARNING))


class Narrator:
    """Logs changes, and nothing about an empty block or a repeated error."""

    def __init__(
        self,
        progress_bar: bool = False,
        serves_final_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show a bar while catching up, where ``progress_bar`` means that there is a terminal."""
        self._wants_bar = progress_bar
        self._serves_final_only = serves_final_only
        self._clock = clock
        self._bar: Any = None
        self._rate_meter: RateMeter | None = None
        self._next_line = 0.0
        self._is_at_head = False
        self._last = LogEvent("started", "")

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Log what a step of so many seconds did, if a person would want to know."""
        if self._last.name == "retrying":
            text = f"following again at block {result.cursor}"
            self._say(LogEvent("recovered", text, _block(result.cursor)))
        if isinstance(result, Advanced):
            self._advanced(result, seconds)
            return
        event = event_of_result(result)
        if event.name != "idle" or not self._is_at_head:
            self._say(event)
        self._is_at_head = event.name == "idle"

    def failed(self, error: ChainkitError) -> None:
        """Log an error once, until something else happens."""
        self._is_at_head = False
        # The log reports that all endpoints rest only if it has not reported the cause before.
        if not (isinstance(error, NoEndpointAvailable) and self._last.name == "retrying"):
            self._say(event_of_error(error))

    def stopped(self, error: ChainkitError) -> None:
        """Log the error that ends the loop."""
        self._say(event_of_error(error, is_fatal=True))

    def ended(self, is_by_signal: bool, cursor: BlockReference | None) -> None:
        """Log that the loop ended without an error, and where."""
        place = "before the first block" if cursor is None else f"at block {cursor}"
        reason = "signal" if is_by_signal else "goal"
        text = f"stopped {place}, {'by a signal' if is_by_signal else 'done'}"
        fields = {"reason": reason} if cursor is None else _block(cursor) | {"reason": reason}
        self._say(LogEvent("ended", text, fields))

    def close(self) -> None:
        """Give the terminal's line back."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None

    def _advanced(self, result: Advanced, seconds: float) -> None:
        to_go = blocks_to_go(result, self._serves_final_only)
        if self._rate_meter is not None:
            self._catch_up(result, to_go, self._rate_meter)
        elif to_go > CATCHING_UP_BLOCKS:
            self._begin_to_catch_up(result, to_go, seconds)
        else:
            self._followed(result, seconds)

    def _followed(self, result: Advanced, seconds: float) -> None:
        if result.envelopes or result.quarantined or result.left_out:
            event = event_of_result(result)
            self._say(replace(event, fields={**event.fields, "seconds": round(seconds, 6)}))

    def _begin_to_catch_up(self, result: Advanced, to_go: int, seconds: float) -> None:
        self._is_at_head = False
        self._rate_meter = RateMeter(result.from_block - 1, seconds, self._clock)
        self._next_line = self._clock() + PROGRESS_SECONDS
        if not self._wants_bar:
            self._say(_catching_up(result, to_go))
        self._catch_up(result, to_go, self._rate_meter)

    def _catch_up(self, result: Advanced, to_go: int, meter: RateMeter) -> None:
        pace = meter.advanced(result, to_go)
        if self._wants_bar:
            self._draw(result, to_go, pace)
        elif to_go and self._clock() >= self._next_line:
            self._next_line = self._clock() + PROGRESS_SECONDS
            self._say(_catching_up(result, to_go, pace))
        if not to_go:
            self._rate_meter = None
            self._say(_caught_up(result, meter))

    def _draw(self, result: Advanced, to_go: int, pace: Pace) -> None:
        blocks = result.cursor.number - result.from_block + 1
        if self._bar is None:
            self._bar = click.progressbar(
                length=blocks + to_go,
                label="catching up",
                file=sys.stderr,
                # As wide as the terminal leaves: a line that wraps cannot be drawn over.
                width=0,
                # Our rate covers the last seconds only, and shows more.
                show_eta=False,
                item_show_func=lambda shown: shown,
            )
        self._bar.length = max(self._bar.pos + blocks + to_go, self._bar.length)
        self._bar.update(blocks, str(pace))

    def _say(self, event: LogEvent) -> None:
        if event.text != self._last.text:
            self.close()
            log_event(event)
            self._last = event


def _catching_up(result: Advanced, to_go: int, pace: Pace | None = None) -> LogEvent:
    cursor = result.cursor
    text = f"catching up: block {cursor.number} of {cursor.number + to_go}"
    fields = _block(cursor) | {"head": result.head.number, "blocks_to_go": to_go}
    if pace is None:
        return LogEvent("catching_up", text, fields, is_news=True)
    left = pace.remaining_seconds
    fields |= {
        "blocks_per_second": round(pace.blocks_per_second, 1),
        "events_per_second": round(pace.events_per_second, 1),
        "remaining_seconds": None if left is None else round(left),
    }
    return LogEvent("catching_up", f"{text}, {pace}", fields, is_news=True)


def _caught_up(result: Advanced, meter: RateMeter) -> LogEvent:
    text = (
        f"caught up: blocks {meter.first_block} to {result.cursor}: "
        f"{meter.envelopes} envelopes, {meter.quarantined} quarantined, "
        f"in {duration(meter.seconds)}"
    )
    fields = {
        "from_block": meter.first_block,
        "head": result.head.number,
        "envelopes": meter.envelopes,
        "quarantined": meter.quarantined,
        "seconds": round(meter.seconds, 3),
    }
    return LogEvent("caught_up", text, _block(result.cursor) | fields)
