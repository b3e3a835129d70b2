"""One payload contract's administrators, pause and bounds, replayed from its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from chainkit.types import HASH_LENGTH, Log
from chainkit_jobs.administration.contradiction import LogPosition, Report, place_of

ADMINISTRATOR: Final = bytes(HASH_LENGTH)
"""OpenZeppelin's DEFAULT_ADMIN_ROLE: the only role that our contracts ask for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The payload sizes that were allowed from a place on, in bytes, both ends included."""

    since: LogPosition
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Implementation:
    """The code that a proxy runs from a place on."""

    place: LogPosition
    transaction_hash: bytes
    """32 bytes."""
    address: str
    """The implementation's address, with its checksum."""


@dataclass(slots=True)
class SequencedLogReplay:
    """The contract's state after each event; an event that does not fit is reported."""

    report: Report
    administrators: set[str] = field(default_factory=set)
    pauses: list[tuple[LogPosition, LogPosition | None]] = field(default_factory=list)
    """First and last place of each pause; None while it lasts."""
    bounds: list[Bounds] = field(default_factory=list)
    implementations: list[Implementation] = field(default_factory=list)
    """The first came with the proxy."""
    is_initialized: bool = False
    _authorized: str | None = None

    def apply(self, log: Log, event: str, arguments: Mapping[str, Any]) -> None:
        """Apply the next event of this contract; payload events are skipped."""
        authorized, self._authorized = self._authorized, None
        match event:
            case "RoleGranted" | "RoleRevoked":
                self._change_role(log, event == "RoleGranted", arguments)
            case "Paused" | "Unpaused":
                self._change_pause(log, event == "Paused", arguments["account"])
            case "PayloadBoundsSet":
                self._require_administrator(log, event, arguments["account"])
                least, most = arguments["minimum"], arguments["maximum"]
                self.bounds.append(Bounds(place_of(log), least, most))
            case "UpgradeAuthorized":
                self._require_administrator(log, event, arguments["upgrader"])
                self._authorized = arguments["newImplementation"]
            case "Upgraded":
                found = arguments["implementation"]
                if self.implementations and authorized != found:
                    expected = "UpgradeAuthorized for this implementation just before"
                    self.report(log, expected, authorized or "none")
                change = Implementation(place_of(log), log.transaction_hash, found)
                self.implementations.append(change)
            case "Initialized":
                if self.is_initialized:
                    self.report(log, "one Initialized, by the proxy's constructor", "another")
                self.is_initialized = True

    @property
    def is_paused(self) -> bool:
        """Return whether payloads are stopped."""
        return bool(self.pauses) and self.pauses[-1][1] is None

    def _change_role(self, log: Log, is_granted: bool, arguments: Mapping[str, Any]) -> None:
        account, sender = arguments["account"], arguments["sender"]
        event = "RoleGranted" if is_granted else "RoleRevoked"
        if is_granted or sender != account:
            self._require_administrator(log, event, sender)
        if arguments["role"] != ADMINISTRATOR:
            return
        if is_granted == (account in self.administrators):
            held = "an administrator already" if is_granted else "no administrator"
            self.report(log, f"{event} that changes something", f"{account}, {held}")
        if is_granted:
            self.administrators.add(account)
            return
        self.administrators.discard(account)
        if not self.administrators:
            self.report(log, "an administrator who stays", f"{account}, the last one, left")

    def _change_pause(self, log: Log, is_pause: bool, account: str) -> None:
        self._require_administrator(log, "Paused" if is_pause else "Unpaused", account)
        if is_pause == self.is_paused:
            state = "paused" if self.is_paused else "not paused"
            self.report(log, "a change of the pause", f"none: it was {state}")
        elif is_pause:
            self.pauses.append((place_of(log), None))
        else:
            self.pauses[-1] = (self.pauses[-1][0], place_of(log))

    def _require_administrator(self, log: Log, event: str, account: str) -> None:
        # The deployer acts in the proxy's constructor, before there is an administrator.
        if self.is_initialized and account not in self.administrators:
            self.report(log, f"{event} by an administrator", account)
