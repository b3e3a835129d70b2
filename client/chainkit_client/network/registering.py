"""Registers an installation in its inbox: publishes the update, and waits until nodes serve it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from chainkit.identity.actions import AddAssociation, CreateInbox
from chainkit.identity.writing import InstallationSigner, Step, WalletSigner, written_update
from chainkit_client.mls.engine import Installation
from chainkit_client.network.inboxes import Inbox, inbox_of, updates_of
from chainkit_client.network.payloads import identity_payload
from chainkit_client.network.session import NetworkSession

_PAUSE_SECONDS: Final = 0.25


async def publish_association(
    session: NetworkSession,
    wallet: WalletSigner,
    installation: Installation,
    inbox_id: bytes,
    nonce: int,
    is_new: bool,
) -> None:
    """Publish the update that adds an installation to a wallet's inbox, and makes a new inbox."""
    signer = InstallationSigner(installation.secret)
    steps: list[Step] = [(CreateInbox(wallet.identifier, nonce), (wallet,))] if is_new else []
    steps.append((AddAssociation(signer.identifier), (wallet, signer)))
    now_ns = time.time_ns()
    update = written_update(inbox_id, now_ns, steps)
    before = {} if is_new else await updates_of(session, inbox_id)
    payload = identity_payload(inbox_id, update, max(before, default=None))
    await session.publisher.publish(payload, now_ns)


async def registered(
    session: NetworkSession,
    wallet: WalletSigner,
    installation: Installation,
    inbox_id: bytes,
    nonce: int,
    seconds: float,
) -> Inbox | None:
    """Return a wallet's inbox with an installation, which is put there if it is not yet.

    None where nodes do not serve the update in time.
    """
    inbox = await inbox_of(session, inbox_id)
    if inbox is not None and installation.public_key in inbox.installations:
        return inbox
    is_new = inbox is None
    await publish_association(session, wallet, installation, inbox_id, nonce, is_new)
    return await read_until_in(session, inbox_id, installation.public_key, seconds)


async def read_until_in(
    session: NetworkSession, inbox_id: bytes, installation: bytes, seconds: float
) -> Inbox | None:
    """Wait until nodes serve an update of an inbox, with their delay; None where it is too late."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        inbox = await inbox_of(session, inbox_id)
        if inbox is not None and installation in inbox.installations:
            return inbox
        await asyncio.sleep(_PAUSE_SECONDS)
    return None
