"""Tells a person what the loop does: log lines, and a progress bar while it catches up."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import click

from chainkit.errors import RetryableChainError
from chainkit_indexer.types import Advanced, RolledBack, StepResult

_logger = logging.getLogger("chainkit_indexer")


def configure_logging() -> None:
    """Write log lines to stderr; their prefix is the only place where the local clock shows."""
    formatter = logging.Formatter("%(asctime)sZ %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    _logger.handlers[:] = [handler]
    _logger.setLevel(logging.INFO)


def describe(result: StepResult) -> str:
    """Say in one line what a step did."""
    if isinstance(result, Advanced):
        several = "" if result.from_block == result.cursor.number else f"s {result.from_block} to"
        counts = f"{result.envelopes} envelopes, {result.quarantined} quarantined"
        return f"block{several} {result.cursor}: {counts}"
    if isinstance(result, RolledBack):
        return (
            f"reorg {result.reorg_id}: {result.depth} blocks taken back to {result.cursor}, "
            f"{result.retracted} payloads retracted"
        )
    if result.head.number < result.cursor.number:
        return f"waiting: head {result.head} is below the cursor {result.cursor}"
    return f"idle at the head {result.cursor}"


class Narrator:
    """Logs what changes, and says nothing about an empty block or a repeated error."""

    def __init__(self, progress_bar: bool) -> None:
        """Show a bar while catching up, where ``progress_bar`` says that a terminal is there."""
        self._wants_bar = progress_bar
        self._bar: Any = None
        self._last_said = ""

    def succeeded(self, result: StepResult) -> None:
        """Log what a step did, if a person would want to know."""
        if isinstance(result, Advanced) and self._advance_bar(result):
            return
        is_empty = isinstance(result, Advanced) and not (result.envelopes or result.quarantined)
        if not is_empty:
            self._say(logging.INFO, describe(result))
        elif self._last_said.startswith("retrying"):
            self._say(logging.INFO, f"following again at block {result.cursor}")

    def failed(self, error: RetryableChainError) -> None:
        """Log an error once, until something else happens."""
        self.close()
        self._say(logging.WARNING, f"retrying: {error}")

    def close(self) -> None:
        """Give the terminal's line back."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None

    def _say(self, level: int, text: str) -> None:
        if text != self._last_said:
            _logger.log(level, "%s", text)
            self._last_said = text

    def _advance_bar(self, result: Advanced) -> bool:
        left = result.head.number - result.cursor.number
        if self._bar is None:
            if not self._wants_bar or left <= 0:
                return False
            length = result.head.number - result.from_block + 1
            self._bar = click.progressbar(length=length, label="catching up", file=sys.stderr)
        self._bar.length = max(self._bar.pos + left, self._bar.length)
        self._bar.update(result.cursor.number - result.from_block + 1)
        if left <= 0:
            self.close()
        return True
