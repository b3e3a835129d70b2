"""All events of the registry and of the two payload contracts, in the chain's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.errors import MalformedLog
from chainkit.types import Log
from chainkit_jobs.administration.contradiction import Contradiction, Report
from chainkit_jobs.administration.node_registry import NodeRegistryReplay
from chainkit_jobs.administration.sequenced_log import SequencedLogReplay

REGISTRY: Final = "NodeRegistry"
_PAYLOAD_EVENTS: Final = frozenset({"MessageSent", "IdentityUpdateCreated"})


@dataclass(frozen=True, slots=True)
class Administration:
    """The history from the events, and their contradictions."""

    registry: NodeRegistryReplay
    payload_contracts: Mapping[str, SequencedLogReplay]
    """By the contract's name."""
    contradictions: tuple[Contradiction, ...]
    """In the chain's order."""


def replay(logs: Iterable[Log], contracts: Mapping[str, bytes]) -> Administration:
    """Replay events from the deployment on.

    ``logs`` are those of ``contracts`` (name to address) in the chain's order; payload events may
    be left out. A replay that begins later would find false contradictions.
    """
    found: list[Contradiction] = []
    registry = NodeRegistryReplay(_reporter(found, REGISTRY))
    payload_contracts = {n: SequencedLogReplay(_reporter(found, n)) for n in SEQUENCED_LOGS}
    states: dict[str, NodeRegistryReplay | SequencedLogReplay] = {
        REGISTRY: registry,
        **payload_contracts,
    }
    names = {contracts[name]: name for name in states if name in contracts}
    for log in logs:
        name = names.get(log.address)
        if name is None:
            continue
        try:
            event = shipped_interface(name).decode_event(log)
        except MalformedLog as error:
            found.append(Contradiction(name, log, str(error.expected), str(error.got)))
            continue
        if event is None:
            # A later implementation may emit more events; `Upgraded` shows its code.
            continue
        if event[0] not in _PAYLOAD_EVENTS:
            states[name].apply(log, *event)
    return Administration(registry, payload_contracts, tuple(found))


def _reporter(found: list[Contradiction], contract: str) -> Report:
    def report(log: Log, expected: object, got: object) -> None:
        found.append(Contradiction(contract, log, str(expected), str(got)))

    return report
