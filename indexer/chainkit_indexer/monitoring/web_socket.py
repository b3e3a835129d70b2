"""Logs when new heads stop arriving over the WebSocket, and when they arrive again."""

from __future__ import annotations

import logging

from chainkit.chain.heads import HeadWatcher, SubscriptionState
from chainkit.service.log_lines import LogEvent, log_event


class WebSocketNarrator:
    """Look from time to time; a state that did not change is not logged again."""

    def __init__(self, heads: HeadWatcher) -> None:
        """Watch a head watcher, whose polls go on in any case."""
        self._heads = heads
        self._is_lost = False

    def look(self) -> None:
        """Log how the subscription changed since the last look."""
        statistics = self._heads.statistics()
        is_lost = statistics.state is SubscriptionState.WAITING
        if is_lost == self._is_lost or statistics.state is SubscriptionState.CONNECTING:
            return
        self._is_lost = is_lost
        if is_lost:
            text = f"WebSocket {self._heads.name}: {statistics.last_error}; polling goes on"
            log_event(LogEvent("web_socket", text, level=logging.WARNING))
        else:
            log_event(LogEvent("web_socket", f"WebSocket {self._heads.name}: subscribed again"))
