"""The registry's owner, nodes and holders, replayed from its events (XIP-49 §3.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from chainkit.errors import MalformedLog
from chainkit.protocol.events import decode_node_updated
from chainkit.signatures import is_valid_public_key
from chainkit.types import Log, Node
from chainkit_jobs.administration.contradiction import LogPosition, Report, place_of

NODE_INCREMENT: Final = 100
_NOBODY: Final = "0x" + 40 * "0"

_ANNOUNCED: Final = {
    "NodeAdded": "a new node",
    "NodeHealthUpdated": "a new status",
    "NodeHttpAddressUpdated": "a new HTTP address",
}
"""Events that a NodeUpdated follows, and the fields that it may then change."""


@dataclass(slots=True)
class NodeRegistryReplay:
    """The registry's state after each event; an event that does not fit is reported."""

    report: Report
    owner: str | None = None
    are_updates_open: bool = False
    holders: dict[int, str] = field(default_factory=dict)
    history: dict[int, list[tuple[LogPosition, Node]]] = field(default_factory=dict)
    """Node id to its entries, each with the place of its event."""
    _announced: tuple[str, Mapping[str, Any]] | None = None

    def apply(self, log: Log, event: str, arguments: Mapping[str, Any]) -> None:
        """Take in the registry's next event."""
        announced, self._announced = self._announced, None
        if announced and event != "NodeUpdated":
            self.report(log, f"NodeUpdated after {announced[0]}", event)
        match event:
            case "OwnershipTransferred":
                self._change_owner(log, arguments)
            case "OwnershipTransferStarted":
                self._require_owner(log, event, arguments["previousOwner"])
            case "HttpAddressUpdatesOpenChanged":
                self._require_owner(log, event, arguments["account"])
                self.are_updates_open = arguments["open"]
            case "Transfer":
                self._move(log, arguments)
            case "NodeTransferred":
                self._require_owner(log, event, arguments["account"])
                self._require_holder(log, event, arguments["nodeId"], arguments["to"])
            case "NodeAdded" | "NodeHealthUpdated":
                self._require_owner(log, event, arguments["account"])
                self._announced = event, arguments
            case "NodeHttpAddressUpdated":
                self._require_holder(log, event, arguments["nodeId"], arguments["account"])
                if not self.are_updates_open:
                    self.report(log, "updates of HTTP addresses to be open", "closed")
                self._announced = event, arguments
            case "NodeUpdated":
                self._update(log, announced)
            case _:
                self.report(log, "an event that the registry emits", event)

    def _change_owner(self, log: Log, arguments: Mapping[str, Any]) -> None:
        before, after = arguments["previousOwner"], arguments["newOwner"]
        expected = self.owner or _NOBODY
        if before != expected:
            self.report(log, f"ownership to come from {expected}", before)
        if after == _NOBODY:
            self.report(log, "an owner", "nobody: ownership cannot be renounced")
        self.owner = after

    def _move(self, log: Log, arguments: Mapping[str, Any]) -> None:
        node_id, before = arguments["tokenId"], arguments["from"]
        expected = self.holders.get(node_id, _NOBODY)
        if before != expected:
            self.report(log, f"node {node_id} to come from {expected}", before)
        self.holders[node_id] = arguments["to"]

    def _update(self, log: Log, announced: tuple[str, Mapping[str, Any]] | None) -> None:
        try:
            node = decode_node_updated(log)
        except MalformedLog as error:
            self.report(log, error.expected, error.got)
            return
        entries = self.history.setdefault(node.node_id, [])
        event, arguments = announced or ("", {})
        if arguments.get("nodeId") != node.node_id:
            what = f"{event} of node {arguments['nodeId']}" if announced else "no such event"
            expected = f"who changed node {node.node_id} to be told just before"
            self.report(log, expected, what)
        if entries:
            self._check_change(log, entries[-1][1], node, event)
        else:
            self._check_new(log, node, event)
        if event == "NodeHealthUpdated" and node.is_enabled != arguments["isHealthy"]:
            self.report(log, "the status just told", "the other one")
        entries.append((place_of(log), node))

    def _check_new(self, log: Log, node: Node, event: str) -> None:
        expected = NODE_INCREMENT * len(self.history)
        if node.node_id != expected:
            self.report(log, f"node id {expected}, the next one", node.node_id)
        if event and event != "NodeAdded":
            self.report(log, f"node {node.node_id} to have been added before", event)
        if not is_valid_public_key(node.signing_key):
            self.report(log, "a public key on secp256k1", f"0x{node.signing_key.hex()}")
        for other, entries in self.history.items():
            if entries and entries[-1][1].signing_key == node.signing_key:
                self.report(log, "a key that no other node has", f"node {other}'s")

    def _check_change(self, log: Log, before: Node, after: Node, event: str) -> None:
        changes = {
            "a new key": before.signing_key != after.signing_key,
            "a new status": before.is_enabled != after.is_enabled,
            "a new HTTP address": before.http_address != after.http_address,
        }
        allowed = _ANNOUNCED.get(event)
        for change, happened in changes.items():
            if happened and change != allowed:
                stated = f"{event} tells of {allowed}" if event else "nothing was told"
                self.report(log, f"node {after.node_id} without {change}: {stated}", change)

    def _require_owner(self, log: Log, event: str, account: str) -> None:
        if account != self.owner:
            self.report(log, f"{event} by the owner, {self.owner or 'nobody so far'}", account)

    def _require_holder(self, log: Log, event: str, node_id: int, account: str) -> None:
        holder = self.holders.get(node_id)
        if account != holder:
            expected = f"{event} to name node {node_id}'s holder, {holder or 'nobody so far'}"
            self.report(log, expected, account)
