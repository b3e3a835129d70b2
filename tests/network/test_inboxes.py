"""GetInboxIds against the members that the native client derives from the same updates."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from localnet.native_client import NativeClient
from localnet.network import Network
from support.network.api import Api
from support.network.people import new_person


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
        # Each pair once: within a second the library would sign the same text again, a replay.
        pairs = [(person, wallet) for person in people for wallet in pool]
        chance.shuffle(pairs)
        while pairs or owner:
            free = [pair for pair in pairs if pair[1].address.lower() not in owner]
            if free and (not owner or chance.random() < 0.6):
                person, wallet = free[0]
                pairs.remove(free[0])
                await person.associate(wallet)
                owner[wallet.address.lower()] = person
            else:
                wallet = chance.choice([each for each in pool if each.address.lower() in owner])
                person = owner.pop(wallet.address.lower())
                await person.revoke(wallet)
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
