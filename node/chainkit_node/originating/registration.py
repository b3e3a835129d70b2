"""Under which id this node originates: what the registry, as it was followed, says of its key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from chainkit.service.refusals import NotReady
from chainkit_indexer.inspection.status import RegistryState, read_registry_state
from chainkit_indexer.storage.store import Store

LOOK_SECONDS: Final = 2.0
"""How long an entry is believed before the database is read again."""


class Registration:
    """Entry of this node in the registry, by its own database; for several threads."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """Take the database and a clock in seconds, which need not be the time of day."""
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._state: RegistryState | None = None
        self._read_at = float("-inf")

    def node_id(self) -> int:
        """Return the id of this node, while it is enabled.

        Raises NotReady where the registry was not followed yet, has no such key, or disabled it,
        and StoreUnavailable.
        """
        state = self._current()
        if state is None:
            raise NotReady("registry", "its nodes at a block", "none: it was not followed yet")
        if state.node_id is None:
            raise NotReady("registry", "a node with this node's key", f"none at {state.block}")
        if state.node_id not in state.enabled_nodes:
            raise NotReady(f"node {state.node_id}", "an enabled node", "a disabled one")
        return state.node_id

    def _current(self) -> RegistryState | None:
        with self._lock:
            now = self._clock()
            if now - self._read_at >= LOOK_SECONDS:
                self._state = self._read()
                self._read_at = now
            return self._state

    def _read(self) -> RegistryState | None:
        key = self._store.identity.node_public_key
        with self._store.reading() as connection:
            return read_registry_state(connection, key)
