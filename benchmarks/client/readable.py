"""From a commit to a group that all its members have followed: gateway, chain, node and clients."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.network.nodes import PASSWORD, new_registry
from chainkit.contracts.deployment import read_deployment_record
from chainkit.nodes.gateway import Gateway
from chainkit.signatures import SigningKey
from chainkit_client.messenger import Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.storage.store import Store
from localnet.accounts import development_account
from localnet.anvil import Anvil
from localnet.network import Network, running_network

BLOCK_SECONDS: Final = 1
PEOPLE: Final = 3
PAUSE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Readable:
    """Milliseconds from the wish of a member until each one was in the new epoch."""

    median_ms: float
    p99_ms: float


def measure(commits: int) -> Readable:
    """Let one member update its keys so often, on a chain with a block each second."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "network"
        registry = stack.enter_context(new_registry(folder))
        anvil, settings = registry.anvil, registry.settings
        owner = folder / "owner.keystore"
        network = stack.enter_context(running_network(settings, folder, owner, PASSWORD))
        engine = stack.enter_context(NodeEngine())
        record = read_deployment_record(settings.record_path)
        chain = Chain(anvil.endpoint, record, frozenset({0}))
        took = sorted(asyncio.run(_measured(folder, anvil, network, chain, engine, commits)))
    return Readable(1000 * took[len(took) // 2], 1000 * took[(99 * len(took) - 1) // 100])


async def _measured(
    folder: Path, anvil: Anvil, network: Network, chain: Chain, engine: NodeEngine, commits: int
) -> list[float]:
    async with AsyncExitStack() as stack:
        people = []
        for number in range(PEOPLE):
            store = Store.open(folder / f"{number}.db", PASSWORD, cost=2)
            stack.callback(store.close)
            gateway = Gateway(network.gateway_url)
            messenger = Messenger(store, engine, chain, gateway)
            people.append(await stack.enter_async_context(messenger))
        wallets = [development_account(number) for number in range(1, PEOPLE + 1)]
        for person, wallet in zip(people, wallets, strict=True):
            await person.register(SigningKey(bytes(wallet.key)))
        author, *others = people
        group_id = await author.create_group([each.address for each in wallets[1:]])
        await author.settle()
        for person in others:
            await person.sync()
            person.accept(group_id)
        await asyncio.to_thread(anvil.request, "evm_setAutomine", False)
        await asyncio.to_thread(anvil.request, "evm_setIntervalMining", BLOCK_SECONDS)
        return [await _commit(people, group_id) for _ in range(commits)]


async def _commit(people: Sequence[Messenger], group_id: bytes) -> float:
    """Return the seconds until everybody has followed one commit."""
    author = people[0]
    wanted = _epoch(author, group_id) + 1
    began = time.perf_counter()
    author.update_keys(group_id)
    await asyncio.gather(*(_follow(each, group_id, wanted) for each in people))
    elapsed = time.perf_counter() - began
    await author.settle()
    return elapsed


async def _follow(person: Messenger, group_id: bytes, wanted: int) -> None:
    while True:
        await person.sync_group(group_id)
        if _epoch(person, group_id) >= wanted:
            return
        await asyncio.sleep(PAUSE_SECONDS)


def _epoch(person: Messenger, group_id: bytes) -> int:
    [epoch] = [each.epoch for each in person.groups() if each.id == group_id]
    assert epoch is not None
    return epoch
