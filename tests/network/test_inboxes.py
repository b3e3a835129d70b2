"""GetInboxIds against the members that the native client derives from the same updates."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from localnet.native_client import NativeClient
from localnet.network import Network
from support.network.api import Api

from .conftest import new_person

CHANGES = 12


@pytest.mark.conforms("N26")
def test_inbox_ids__random_changes_by_real_clients__answers_what_the_library_derives(
    network: Network, tmp_path: Path
) -> None:
    """Two people pass some wallets to and fro; after each change all answers are compared."""
    chance = random.Random(11)
    node = Api(network.node_url)
    pool = [new_person() for _ in range(3)]

    async def live() -> set[str | None]:
        people = [
            await NativeClient.register(network.gateway_url, tmp_path / name, new_person())
            for name in ("ann", "ben")
        ]
        addresses = [wallet.address.lower() for wallet in pool]
        answered: set[str | None] = set()
        owner: dict[str, NativeClient] = {}
        for _ in range(CHANGES):
            person, wallet = chance.choice(people), chance.choice(pool)
            address = wallet.address.lower()
            if owner.get(address) is None:
                await person.associate(wallet)
                owner[address] = person
            else:
                await owner.pop(address).revoke(wallet)
            if chance.random() < 0.2:
                await person.change_recovery(new_person())
            derived = {person.inbox_id: await person.wallets() for person in people}
            expected = [
                next((inbox for inbox, wallets in derived.items() if address in wallets), None)
                for address in addresses
            ]
            assert node.inbox_ids(*addresses) == expected
            upper = [address.upper().replace("0X", "0x") for address in addresses]
            assert node.inbox_ids(*upper) == expected
            answered.update(expected)
        assert node.inbox_ids(people[0].account.address.lower()) == [people[0].inbox_id]
        return answered

    try:
        assert len(asyncio.run(asyncio.wait_for(live(), 120))) == 3
    finally:
        node.close()
