"""An event loop whose only thread is the test's."""

from __future__ import annotations

from typing import Any


class ImmediateLoop:
    """Calls at once what another thread hands to it."""

    def call_soon_threadsafe(self, function: Any, *arguments: Any) -> None:
        function(*arguments)
