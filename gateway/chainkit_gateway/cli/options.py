"""Options that several of the gateway's commands share."""

from __future__ import annotations

from chainkit.terminal.options import Option, file_option


def journal_option_for(purpose: str) -> Option:
    """Return the option that names the gateway's journal; ``purpose`` is its help."""
    return file_option(
        "--journal", "journal_path", "CHAINKIT_GATEWAY_JOURNAL", purpose, required=True
    )
