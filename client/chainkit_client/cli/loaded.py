"""The outcome of an import of history, as people and scripts read it."""

from __future__ import annotations

from typing import Any

from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import echo_json
from chainkit_client.cli.pages import time_of
from chainkit_client.history.loading import Loaded


def tell_loaded(loaded: Loaded, as_json: bool) -> None:
    """Print whose messages came, and how many."""
    content: dict[str, Any] = {
        "device": loaded.installation.hex(),
        "created_ns": loaded.created_ns,
        "new": loaded.new,
        "known": loaded.known,
        "disputed": loaded.disputed,
    }
    if as_json:
        echo_json(content)
        return
    echo_fact("device", content["device"])
    echo_fact("written", f"{time_of(loaded.created_ns)} UTC, by that device's clock")
    echo_fact("messages", f"{loaded.new:,} new, {loaded.known:,} known")
    if loaded.disputed:
        echo_fact("disputed", f"{loaded.disputed:,}: another device names another sender")
