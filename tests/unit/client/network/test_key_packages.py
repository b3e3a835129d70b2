"""An installation's own key packages: offered once, and replaced after use and in time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainkit.nodes.outcomes import NodeUnreached
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.mls.engine import Installation, KeyPackage
from chainkit_client.network.key_packages import (
    KEPT_SECONDS,
    OFFERED_SECONDS,
    PAUSE_SECONDS,
    OwnKeyPackages,
)
from chainkit_client.network.payloads import offered_key_package
from chainkit_client.storage.own import mark_used, read_key_packages
from chainkit_client.storage.store import Store
from support.client.served import NOW_NS

INSTALLATION = Installation(b"inbox", b"k" * 32, b"s" * 32)


class Offering:
    """One installation, and a network that takes what it publishes, or does not."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now_ns = NOW_NS
        self.made = 0
        self.published: list[tuple[bytes, int]] = []
        self.tries = 0
        self.failure: Exception | None = None
        session = SimpleNamespace(now_ns=lambda: self.now_ns, publisher=self)
        self.own = OwnKeyPackages(cast(Any, session), store, cast(Any, self))

    def new_key_package(self, installation: Installation) -> KeyPackage:
        self.made += 1
        return KeyPackage(b"\0\1\0\5public %d" % self.made, b"secret")

    async def publish(self, client_envelope: bytes, first_sent_ns: int) -> None:
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        self.published.append((offered_key_package(client_envelope)[4:], first_sent_ns))

    def keep_offering(self, seconds: float = 0.0) -> list[bytes]:
        self.now_ns += int(seconds * NANOSECONDS_PER_SECOND)
        asyncio.run(self.own.keep_offering(INSTALLATION))
        return [each for each, _ in self.published]

    def kept(self) -> list[bytes]:
        with self.store.reading() as connection:
            return [each.public for each in read_key_packages(connection, self.store.seal)]


@pytest.fixture
def offering(store: Store) -> Offering:
    return Offering(store)


def test_offer__a_week_and_uses__each_time_another_one_and_old_keys_are_deleted(
    offering: Offering,
) -> None:
    assert offering.keep_offering() == [b"public 1"]
    assert offering.keep_offering(OFFERED_SECONDS - 1) == [b"public 1"]
    with offering.store.writing() as connection:
        mark_used(connection, offering.kept()[0])
    assert offering.keep_offering() == [b"public 1", b"public 2"]

    assert offering.keep_offering(OFFERED_SECONDS)[-1] == b"public 3"
    assert len(offering.kept()) == 3
    # The first one's keys open welcomes that may be on their way for a while.
    assert offering.keep_offering(KEPT_SECONDS)[-1] == b"public 4"
    assert [each[4:] for each in offering.kept()] == [b"public 4", b"public 3", b"public 2"]


def test_keep_offering__gateway_is_away__the_same_one_is_published_later(
    offering: Offering,
) -> None:
    offering.failure = NodeUnreached("gateway", "a connection", "none")
    assert offering.keep_offering() == offering.keep_offering(PAUSE_SECONDS - 1) == []
    assert offering.tries == 1
    offering.failure = None

    assert offering.keep_offering(1) == [b"public 1"]
    # An answer may have the time of the first sending.
    assert offering.published[0][1] == NOW_NS
