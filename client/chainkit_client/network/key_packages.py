"""The offer of an installation: one key package, which is replaced after its use and in time.

The keys of a key package open all welcomes that were made with it. So each key package serves one
welcome where others see the next one in time, and the welcomes of a week at most.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from chainkit.nodes.outcomes import NodeUnreached
from chainkit.service.refusals import PassedOn
from chainkit.types import NANOSECONDS_PER_SECOND, TopicKind
from chainkit_client.mls.engine import EngineFailed, Installation, Member, MlsEngine, MlsRefused
from chainkit_client.network.payloads import key_package_payload, offered_key_package
from chainkit_client.network.publisher import OutcomeUnknown
from chainkit_client.network.session import NetworkSession
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage.own import (
    Offer,
    forget_key_packages,
    insert_key_package,
    mark_offered,
    read_newest_offer,
)
from chainkit_client.storage.store import Store

OFFERED_SECONDS: Final = 7 * 86_400
"""A key package that is older is replaced."""

KEPT_SECONDS: Final = 14 * 86_400
"""How long the keys of a replaced key package are kept: welcomes to it may be on their way."""

PAUSE_SECONDS: Final = 60
"""Between two attempts to publish a key package."""


class OwnKeyPackages:
    """The key packages of one installation; for one event loop."""

    def __init__(self, session: NetworkSession, store: Store, engine: MlsEngine) -> None:
        """Take the session, the client's database, and what makes keys."""
        self._session = session
        self._store = store
        self._engine = engine
        self._next_ns = 0

    async def offer(self, installation: Installation) -> None:
        """Publish a key package, unless one is offered that is new enough.

        Raises EngineFailed, and the errors of a publish: the next call continues.
        """
        newest = await asyncio.to_thread(self._renewed, installation)
        if not newest.is_offered:
            payload = key_package_payload(installation.public_key, newest.public)
            await self._session.publisher.publish(payload, newest.created_ns)
            with self._store.writing() as connection:
                mark_offered(connection, newest.public)

    async def keep_offering(self, installation: Installation) -> None:
        """As ``offer``; where it fails, a call after a while tries again.

        A backup offers what its file has the keys of, and nothing else.
        """
        if installation.is_backup or self._session.now_ns() < self._next_ns:
            return
        try:
            await self.offer(installation)
        except (EngineFailed, NodeUnreached, OutcomeUnknown, PassedOn):
            self._next_ns = self._session.now_ns() + PAUSE_SECONDS * NANOSECONDS_PER_SECOND

    def _renewed(self, installation: Installation) -> Offer:
        """Return the newest key package, after making one if the last one was used or is old."""
        now_ns = self._session.now_ns()
        with self._store.reading() as connection:
            newest = read_newest_offer(connection)
        if newest is not None and not _is_over(newest, now_ns):
            return newest
        key_package = self._engine.new_key_package(installation)
        with self._store.writing() as connection:
            other = read_newest_offer(connection)
            if other is not None and not _is_over(other, now_ns):
                # Another process was faster.
                return other
            insert_key_package(connection, self._store.seal, key_package, now_ns)
            forget_key_packages(connection, now_ns - KEPT_SECONDS * NANOSECONDS_PER_SECOND)
        return Offer(key_package.public, now_ns, is_used=False, is_offered=False)


def _is_over(offer: Offer, now_ns: int) -> bool:
    age_ns = now_ns - offer.created_ns
    return offer.is_used or age_ns >= OFFERED_SECONDS * NANOSECONDS_PER_SECOND


async def valid_offers(
    session: NetworkSession, engine: MlsEngine, installation: bytes
) -> list[tuple[bytes, Member]]:
    """Return the key packages that an installation signed and whose time it is, the newest first.

    Raises the network's errors.
    """
    offers = await session.read_topic(TopicKind.KEY_PACKAGE.topic(installation))
    valid = []
    for each in sorted(offers, key=_age, reverse=True):
        offer = offered_key_package(each.client.client_envelope)
        with suppress(MlsRefused):
            member = engine.describe_key_package(offer)
            if member.public_key == installation:
                valid.append((offer, member))
    return valid


def _age(offer: VerifiedEnvelope) -> tuple[int, int]:
    package = offer.client.key_package
    return 0 if package is None else package.not_before, offer.originator_ns
