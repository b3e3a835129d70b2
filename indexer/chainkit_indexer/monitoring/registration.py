"""Logs when the registry does not list this node as enabled, and when it does again."""

from __future__ import annotations

import logging

from chainkit.errors import StoreUnavailable
from chainkit.service.log_lines import LogEvent, log_event
from chainkit_indexer.inspection.status import RegistryState, read_registry_state
from chainkit_indexer.registry.follower import RegistryIdle, RegistryStepResult
from chainkit_indexer.registry.watch import is_behind
from chainkit_indexer.storage.store import Store


class RegistrationNarrator:
    """Look after each step of the registry; a status that did not change is not logged again."""

    def __init__(self, store: Store) -> None:
        """Read the registry's history, and the database's identity, from a store."""
        self._store = store
        self._is_due = True
        self._logged = ""

    def look(self, result: RegistryStepResult | None) -> None:
        """Log this node's new status, once the registry was followed to its head."""
        if result is None:
            return
        if is_behind(result):
            self._is_due = True
            return
        if not self._is_due and isinstance(result, RegistryIdle):
            return
        self._is_due = True
        try:
            state = self._read()
        except StoreUnavailable:
            # The loop raises the same error, and reports it.
            return
        if state is not None:
            self._is_due = False
            self._tell(state)

    def _read(self) -> RegistryState | None:
        key = self._store.identity.node_public_key
        with self._store.reading() as connection:
            return read_registry_state(connection, key)

    def _tell(self, state: RegistryState) -> None:
        status, before = f"{state.node_id} {state.status}", self._logged
        self._logged = status
        is_enabled = state.node_id in state.enabled_nodes
        # A node that is in order from the start is no news.
        if status == before or (is_enabled and not before):
            return
        fields = {"node_id": state.node_id, "status": state.status, "block": state.block.number}
        level = logging.INFO if is_enabled else logging.WARNING
        log_event(LogEvent("registry", self._sentence(state), fields, level))

    def _sentence(self, state: RegistryState) -> str:
        at_block = f"at block {state.block.number}"
        if state.node_id is not None:
            return f"registry: this node is {state.node_id}, {state.status} {at_block}"
        key = f"0x{self._store.identity.node_public_key.hex()[:8]}…"
        advice = "have the council add what `chainkit key show` prints"
        return f"registry: this node's key {key} is {state.status} {at_block}; {advice}"
