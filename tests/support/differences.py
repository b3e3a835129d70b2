"""The differences that `contracts verify --json` found, in the order of its comparisons."""

from __future__ import annotations

from typing import Any

from support.command_line import Outcome


def differences(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the comparisons that do not hold."""
    comparisons = outcome.content["comparisons"]
    return [each for each in comparisons if each["result"] == "differs"]
