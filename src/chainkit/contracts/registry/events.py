"""The registry's events, in words that are safe to print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.contracts.registry.reading import status_word
from chainkit.signatures import address_of, is_valid_public_key
from chainkit.text.printable import printable
from chainkit.types import BlockReference, Node

_ACTORS: Final = {
    "NodeAdded": "account",
    "NodeHealthUpdated": "account",
    "NodeTransferred": "account",
    "NodeHttpAddressUpdated": "account",
    "HttpAddressUpdatesOpenChanged": "account",
    "OwnershipTransferStarted": "previousOwner",
    "OwnershipTransferred": "newOwner",
}
"""Event to the argument that names the acting account; other events come with such an event."""


@dataclass(frozen=True, slots=True)
class RegistryEvent:
    """One event of the registry, with its place in the chain."""

    name: str
    arguments: Mapping[str, Any]
    block: BlockReference
    timestamp: int
    """Time of the block, in seconds since 1970."""
    transaction_hash: bytes
    """32 bytes."""
    log_index: int
    """Position within the block."""

    @property
    def account(self) -> str | None:
        """Checksummed address of the account that acted; None where the event does not name it."""
        if self.name == "OwnershipTransferred" and self.arguments["previousOwner"] == NO_ACCOUNT:
            # The deployer named the first owner, who did nothing.
            return None
        actor = _ACTORS.get(self.name)
        return None if actor is None else str(self.arguments[actor])

    @property
    def node_id(self) -> int | None:
        """The node of the event; None for an event about the whole registry."""
        found = self.arguments.get("nodeId", self.arguments.get("tokenId"))
        return None if found is None else int(found)

    @property
    def node(self) -> Node:
        """The node's entry, as NodeUpdated states it."""
        return Node(self.arguments["nodeId"], *self.arguments["node"].values())

    @property
    def words(self) -> str:
        """The change of the node or of the registry, in one line that is safe to print."""
        return _WORDS[self.name](self)


def telling(events: Sequence[RegistryEvent]) -> list[RegistryEvent]:
    """Leave out repeated events of a transaction; NodeUpdated stays for a new node only."""
    added = {
        (event.transaction_hash, event.node_id) for event in events if event.name == "NodeAdded"
    }
    return [
        event
        for event in events
        if event.name in _ACTORS
        or (event.name == "NodeUpdated" and (event.transaction_hash, event.node_id) in added)
    ]


def node_words(node: Node) -> str:
    """Return all fields of a node but its id, in one line that is safe to print."""
    is_valid = is_valid_public_key(node.signing_key)
    key = address_of(node.signing_key) if is_valid else "no valid key"
    return f"{status_word(node)}, key of {key}, at {printable(node.http_address)}"


def open_words(is_open: bool) -> str:
    """Return whether operators' address updates are open, in a word."""
    return "opened" if is_open else "closed"


def _offered(event: RegistryEvent) -> str:
    new_owner = event.arguments["newOwner"]
    if new_owner == NO_ACCOUNT:
        return "the offer of ownership was withdrawn"
    return f"ownership was offered to {new_owner}"


def _owned(event: RegistryEvent) -> str:
    earlier, owner = event.arguments["previousOwner"], event.arguments["newOwner"]
    return f"created, owned by {owner}" if earlier == NO_ACCOUNT else f"owned by {owner} since then"


_WORDS: Final[Mapping[str, Callable[[RegistryEvent], str]]] = {
    "NodeAdded": lambda event: f"added, held by {event.arguments['holder']}",
    "NodeHealthUpdated": lambda event: "enabled" if event.arguments["isHealthy"] else "disabled",
    "NodeTransferred": lambda event: f"given to {event.arguments['to']}",
    "NodeHttpAddressUpdated": lambda event: (
        f"HTTP address changed to {printable(event.arguments['httpAddress'])}"
    ),
    "NodeUpdated": lambda event: node_words(event.node),
    "Transfer": lambda event: f"moved from {event.arguments['from']} to {event.arguments['to']}",
    "HttpAddressUpdatesOpenChanged": lambda event: (
        f"operators' address updates {open_words(event.arguments['open'])}"
    ),
    "OwnershipTransferStarted": _offered,
    "OwnershipTransferred": _owned,
}
