"""The history of the registry, event by event, with the accounts that acted.

Logs are asked for by range. The block of each is then asked for by height, and must have the hash
that the log contains. Completeness depends on the registry itself: each change of a node comes with
the event that names the account, and the events of the range must lead to the nodes, holders and
owners that the registry returns at the range's end. A hidden event shows there, unless the endpoint
hides whole changes that undid each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from chainkit.chain import LogFilter
from chainkit.chain.log_ranges import logs_by_pieces
from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.contracts.registry.events import RegistryEvent, node_words, open_words
from chainkit.contracts.registry.reading import Registry
from chainkit.errors import InconsistentAnswer
from chainkit.types import BlockHeader, BlockReference, Log

_OWNER: Final = "the owner"
_PENDING_OWNER: Final = "the pending owner"
_UPDATES: Final = "operators' address updates"

_CHANGES: Final = {
    "NodeUpdated": ("NodeAdded", "NodeHealthUpdated", "NodeHttpAddressUpdated"),
    "Transfer": ("NodeAdded", "NodeTransferred"),
}
"""Event about the new state of a node, to the events that name the account that changed the
node."""


def read_history(
    registry: Registry,
    first: int,
    block: BlockReference,
    is_whole: bool,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[RegistryEvent, ...]:
    """Return the registry's events from a height up to a block, in the order of the chain.

    ``is_whole`` means that the registry did not exist before; ``advance`` gets the number of blocks
    that were read. Raises InconsistentAnswer where logs are of another branch, or do not lead to
    the registry's state at the block.
    """
    logs: list[Log] = []
    for blocks, found in logs_by_pieces(
        registry.endpoint, first, block.number, LogFilter((registry.address,))
    ):
        logs += found
        advance(blocks)
    headers = _headers(registry, logs, block)
    events = tuple(_event(registry, log, headers[log.block_number]) for log in logs)
    _check_actors(events)
    _check_outcome(registry, events, block, is_whole)
    return events


def _headers(
    registry: Registry, logs: Sequence[Log], block: BlockReference
) -> dict[int, BlockHeader]:
    """Return the headers of the logs' blocks; raise unless logs and ``block`` are on one branch."""
    heights = sorted({block.number, *(log.block_number for log in logs)})
    found = registry.endpoint.headers(heights)
    headers = {header.number: header for header in found if header is not None}
    wanted = [(log.block_number, log.block_hash) for log in logs]
    for height, expected in (*wanted, (block.number, block.hash)):
        header = headers.get(height)
        if header is None or header.hash != expected:
            got = "nothing" if header is None else f"0x{header.hash.hex()}"
            raise InconsistentAnswer(f"block {height}", f"0x{expected.hex()}", got)
    return headers


def _event(registry: Registry, log: Log, header: BlockHeader) -> RegistryEvent:
    decoded = registry.interface.decode_event(log)
    if decoded is None:
        topic = f"0x{log.topics[0].hex()}" if log.topics else "no topic"
        raise InconsistentAnswer("log", "an event of NodeRegistry", topic, log.place)
    return RegistryEvent(
        *decoded, header.reference, header.timestamp, log.transaction_hash, log.log_index
    )


def _check_actors(events: Sequence[RegistryEvent]) -> None:
    """Raise InconsistentAnswer unless each event about a node has one that names the account."""
    for name, actors in _CHANGES.items():
        surplus: Counter[tuple[bytes, int | None]] = Counter()
        for event in events:
            place = (event.transaction_hash, event.node_id)
            surplus[place] += (event.name in actors) - (event.name == name)
        for (transaction_hash, node_id), count in surplus.items():
            if count:
                expected = f"one {name} of node {node_id} for each {' or '.join(actors)}"
                got = f"{abs(count)} too {'few' if count > 0 else 'many'}"
                subject = f"events of transaction 0x{transaction_hash.hex()}"
                raise InconsistentAnswer(subject, expected, got)


def _check_outcome(
    registry: Registry, events: Sequence[RegistryEvent], block: BlockReference, is_whole: bool
) -> None:
    """Compare the events' result with the registry: the whole registry if the events are whole."""
    stated = {_UPDATES: open_words(False)} if is_whole else {}
    for event in events:
        stated |= _outcome(event)
    said = {
        _OWNER: registry.owner(block),
        _PENDING_OWNER: registry.pending_owner(block),
        _UPDATES: open_words(registry.address_updates_open(block)),
    }
    for each in registry.registered_nodes(block):
        node_id = each.node.node_id
        said |= {f"node {node_id}": node_words(each.node), f"holder of {node_id}": each.holder}
    for subject in (said if is_whole else {}) | stated:
        expected, got = said.get(subject, "nothing"), stated.get(subject, "nothing")
        if expected != got:
            expected = f"events that lead to {expected}"
            raise InconsistentAnswer(f"history of {subject}", expected, got, f"block {block}")


def _outcome(event: RegistryEvent) -> dict[str, str]:
    """Return the new values of an event, by their subject."""
    arguments = event.arguments
    match event.name:
        case "NodeUpdated":
            return {f"node {event.node_id}": node_words(event.node)}
        case "Transfer":
            return {f"holder of {event.node_id}": arguments["to"]}
        case "OwnershipTransferStarted":
            return {_PENDING_OWNER: arguments["newOwner"]}
        case "OwnershipTransferred":
            return {_OWNER: arguments["newOwner"], _PENDING_OWNER: NO_ACCOUNT}
        case "HttpAddressUpdatesOpenChanged":
            return {_UPDATES: open_words(arguments["open"])}
    return {}
