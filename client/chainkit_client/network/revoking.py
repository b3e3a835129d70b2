"""Revokes installations of an inbox: publishes the update, and waits until nodes serve it (XIP-46).

Only the recovery identifier revokes. A second call goes on where the first one ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Final

from chainkit.errors import ChainkitError
from chainkit.identity import identifiers
from chainkit.identity.actions import RevokeAssociation
from chainkit.identity.state import AssociationState
from chainkit.identity.writing import WalletSigner, written_update
from chainkit.service.refusals import PassedOn
from chainkit.types import Place, TopicKind
from chainkit_client.network.devices import read_devices
from chainkit_client.network.inboxes import NoSuchInbox, accepted_updates, updates_of
from chainkit_client.network.payloads import identity_payload
from chainkit_client.network.publisher import OutcomeUnknown
from chainkit_client.network.session import NetworkSession
from chainkit_client.topics.following import Topic

REFUSED_SECONDS: Final = 15.0
"""A gateway refuses what an update on its way has done: the chain may have it a block later."""

_PAUSE_SECONDS: Final = 0.25


class WrongWallet(ChainkitError):
    """The wallet is not the recovery identifier of the inbox, which alone may revoke."""


async def revoke(
    session: NetworkSession,
    wallet: WalletSigner,
    inbox_id: bytes,
    keys: Collection[bytes],
    seconds: float,
) -> bool:
    """Revoke installations in one update; return whether a node serves it within the time.

    Nothing is published where the inbox has revoked all of them. Raises WrongWallet, PassedOn where
    the gateway refuses the update, and the network's errors.
    """
    updates = await updates_of(session, inbox_id)
    state = _state(inbox_id, updates)
    refusal: PassedOn | None = None
    gone = [each for each in map(identifiers.installation, keys) if each in state.members]
    if gone:
        _check_recovery(state, wallet)
        now_ns = time.time_ns()
        steps = [(RevokeAssociation(each), (wallet,)) for each in gone]
        update = written_update(inbox_id, now_ns, steps)
        try:
            payload = identity_payload(inbox_id, update, max(updates))
            await session.publisher.publish(payload, now_ns)
        except OutcomeUnknown:
            # The chain says below whether it was taken.
            pass
        except PassedOn as error:
            refusal, seconds = error, min(seconds, REFUSED_SECONDS)
    deadline = time.monotonic() + seconds
    while not await _is_revoked(session, inbox_id, keys):
        if time.monotonic() > deadline:
            if refusal is not None:
                raise refusal
            return False
        await asyncio.sleep(_PAUSE_SECONDS)
    return True


def _state(inbox_id: bytes, updates: Mapping[Place, bytes]) -> AssociationState:
    accepted = [each for _, each in accepted_updates(inbox_id, updates)]
    if not accepted:
        raise NoSuchInbox("inbox", "one that was created", inbox_id.hex())
    return accepted[-1].state


def _check_recovery(state: AssociationState, wallet: WalletSigner) -> None:
    if wallet.identifier != state.recovery:
        expected = f"{state.recovery}, the inbox's recovery identifier: it alone revokes"
        raise WrongWallet("wallet", expected, wallet.identifier)


async def _is_revoked(session: NetworkSession, inbox_id: bytes, keys: Collection[bytes]) -> bool:
    """Return whether the chain has the revocations of some installations, and a node serves them.

    Where all nodes leave an update out, the chain alone shows it, and today's clients do not.
    """
    updates = await updates_of(session, inbox_id)
    devices = {each.key: each for each in read_devices(inbox_id, updates)}
    places = {devices[each].place for each in keys}
    if None in places:
        return False
    topic = Topic(TopicKind.IDENTITY_UPDATE.topic(inbox_id))
    found = await session.read(session.reader(topic, at_once=len(session.nodes)))
    served = {each.place: each.client.client_envelope for each in found.accepted}
    return all(each is not None and served.get(each) == updates[each] for each in places)
