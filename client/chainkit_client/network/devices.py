"""The devices of a person: the installations that an inbox has, and those that it revoked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chainkit.identity.update import read_update, update_in
from chainkit.types import Place
from chainkit_client.mls.engine import MlsEngine
from chainkit_client.network.inboxes import accepted_updates
from chainkit_client.network.key_packages import valid_offers
from chainkit_client.network.session import NetworkSession


@dataclass(frozen=True, slots=True)
class Device:
    """An installation of an inbox, now or before."""

    key: bytes
    """32 bytes: the installation's id."""
    added_ns: int
    """Nanoseconds since 1970, by the clock of the client that added it."""
    revoked_ns: int | None = None
    """Nanoseconds since 1970, by the clock of the client that revoked it; None for a member."""
    place: Place | None = None
    """The revocation's place, by originator and sequence id."""


def read_devices(inbox_id: bytes, updates: Mapping[Place, bytes]) -> list[Device]:
    """Return all installations that ClientEnvelopes added to an inbox, in the order of additions.

    One that was added again after its revocation is a member, and stands where it came first.
    """
    found: dict[bytes, Device] = {}
    for place, accepted in accepted_updates(inbox_id, updates):
        at_ns = read_update(update_in(updates[place])).client_timestamp_ns
        for each in accepted.changes.installed:
            found[each.value] = Device(each.value, at_ns)
        for each in accepted.changes.uninstalled:
            found[each.value] = replace(found[each.value], revoked_ns=at_ns, place=place)
    return list(found.values())


async def is_backup(session: NetworkSession, engine: MlsEngine, key: bytes) -> bool:
    """Return whether an installation offers to be added as one that only reads (XIP-31).

    Raises the network's errors.
    """
    return any(member.is_backup for _, member in await valid_offers(session, engine, key))
