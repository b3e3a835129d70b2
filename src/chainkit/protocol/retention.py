"""How many days an originator's payload is kept: the payer's choice (XIP-69).

Commits, proposals and identity updates have no such number: they are kept for ever.
"""

from __future__ import annotations

from typing import Final

from chainkit.types import TopicKind

LEAST_RETENTION_DAYS: Final = 1
"""A payer report is due twice a day: nothing is deleted within a day."""

MAXIMUM_RETENTION_DAYS: Final = 365

DEFAULT_RETENTION_DAYS: Final = {
    TopicKind.GROUP_MESSAGE: 30,
    TopicKind.WELCOME: 90,
    TopicKind.KEY_PACKAGE: 90,
}
"""Days of payloads whose payer names none."""
