"""Groups of today's native clients on a network that a test breaks, and what each of them shows.

A client answers one call after the other: each is called by one thread at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from typing import Final, TypeVar

from eth_account import Account

from chainkit.errors import TransactionFailed
from chainkit.protocol.events import MESSAGE_SENT_TOPIC, decode_payload_event
from chainkit.types import PayloadEvent
from localnet.network import GATEWAY_ACCOUNT, start_gateway
from scripts._mining import mining_stopped
from scripts.reorg import newest, reorganise
from support.chains.chain import Deployment
from support.network.node_sdk import NodeSdkClient, NodeSdkFailed
from support.network.real_nodes import PASSWORD, RealNetwork, becomes, real_network, until

T = TypeVar("T")
_KEYS = count(0xD4111)


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make calls at the same time; return their answers, or raise the first one's error."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))


def renamed(name: str) -> str:
    """Return what lists and streams show of a rename."""
    return f"group_name: {name}"


Differences = tuple[list[str], list[str]]
NONE: Final[Differences] = ([], [])
"""The differences of two that are equal but for their order."""


def differences(wanted: Iterable[str], shown: Iterable[str]) -> Differences:
    """Return what is not shown, and what is shown though not wanted, or once too often."""
    one, other = Counter(wanted), Counter(shown)
    return sorted((one - other).elements()), sorted((other - one).elements())


@dataclass(frozen=True)
class Group:
    """A group all of whose members have read it, and published to it."""

    group_id: bytes
    members: Sequence[NodeSdkClient]

    def lists(self) -> list[list[str]]:
        """Return what each member lists once a sync brings nothing new."""
        return together([partial(_whole_list, each, self.group_id) for each in self.members])

    def names(self) -> set[str]:
        """Return the names that the members see after a sync."""
        return set(together([partial(each.name, self.group_id) for each in self.members]))

    def send_all(self, sender: NodeSdkClient, texts: Sequence[str]) -> None:
        """Send texts, one after the other."""
        for text in texts:
            sender.send(self.group_id, text)

    def shows(self, reader: NodeSdkClient, wanted: Sequence[str], seconds: float) -> list[str]:
        """Return what a member's stream has shown once all wanted are there, or time is up."""
        becomes(lambda: set(reader.streamed(self.group_id)) >= set(wanted), seconds)
        return reader.streamed(self.group_id)


def _whole_list(member: NodeSdkClient, group_id: bytes) -> list[str]:
    """List until nothing is new: a sync reads one page of at most 100."""
    shown = member.list(group_id)
    while (more := member.list(group_id)) != shown:
        shown = more
    return shown


@dataclass(frozen=True)
class Drill:
    """A chain, nodes and gateways, and the folder of its clients."""

    network: RealNetwork
    gateways: Sequence[str]
    folder: Path

    @contextmanager
    def people(self, number: int) -> Iterator[list[NodeSdkClient]]:
        """Register people whose clients end with the block, through one gateway after the other."""
        with ExitStack() as stack:
            keys = [next(_KEYS) for _ in range(number)]
            accounts = [Account.from_key(key.to_bytes(32, "big")) for key in keys]
            clients = [stack.enter_context(closing(NodeSdkClient(each))) for each in accounts]
            gateways = islice(cycle(self.gateways), number)
            together(
                [
                    partial(client.connect, gateway, self.folder / str(key))
                    for client, gateway, key in zip(clients, gateways, keys, strict=True)
                ]
            )
            yield clients

    def group(self, members: Sequence[NodeSdkClient]) -> Group:
        """Make a group of people; a member's first text is behind a commit for its own new keys."""
        creator, *others = members
        made: list[bytes] = []

        def is_made() -> bool:
            # The creator's node may lack key packages that other nodes have taken.
            with suppress(NodeSdkFailed):
                made.append(creator.create_group([each.account for each in others]))
            return bool(made)

        until(is_made)
        [group_id] = made
        for each in others:
            until(lambda each=each: group_id in each.join())
        for place, each in enumerate(members):
            # A commit of an epoch that is past is made again, and today's clients may give up.
            until(lambda each=each, place=place: len(each.list(group_id)) == place)
            each.send(group_id, "here")
        group = Group(group_id, members)
        until(lambda: all(len(shown) == len(members) for shown in group.lists()))
        return group

    def is_in_pool(self) -> bool:
        """Whether a transaction waits to be mined."""
        status = self.network.chain.anvil.request("txpool_status")
        return int(status["pending"], 16) > 0

    def commits(self, group: Group) -> list[bytes]:
        """Return the payloads that the chain has of a group now."""
        # The contract knows ids of 32 bytes: today's clients' are followed by zeros.
        events = self._events()
        return [each.payload for each in events if each.identifier[:16] == group.group_id]

    def reorganise(self, depth: int, drop: int, seed: int) -> list[bytes]:
        """Replace blocks, and drop some transactions, as far as these blocks have any.

        Return the payloads that have lower ids since.
        """
        endpoint = self.network.chain.endpoint
        with mining_stopped(endpoint):
            before = {each.payload: each.sequence_id for each in self._events()}
            dropped = min(drop, len(newest(endpoint, depth)))
            for attempt in count(seed, 1_000):
                # One transaction that is placed in its own block again makes the same block.
                with suppress(TransactionFailed):
                    reorganise(endpoint, depth, dropped, 0, seed=attempt)
                    break
            after = {each.payload: each.sequence_id for each in self._events()}
        return [each for each, once in before.items() if after.get(each, once) < once]

    def _events(self) -> list[PayloadEvent]:
        chain = self.network.chain
        contract = chain.record.group_messages.address
        logs = chain.endpoint.logs(0, chain.head().number, [contract], [MESSAGE_SENT_TOPIC])
        return list(map(decode_payload_event, logs))


@contextmanager
def drill(
    deployment: Deployment,
    folder: Path,
    *,
    nodes: int = 1,
    gateways: int = 1,
    database: str | None = None,
    node_options: Sequence[str] = (),
    gateway_options: Sequence[str] = (),
) -> Iterator[Drill]:
    """Start a network; ``database`` is the first node's, and all others are on SQLite."""
    with ExitStack() as stack:
        network = stack.enter_context(real_network(deployment, folder))
        for place in range(nodes):
            network.add(None if place else database, *node_options)
        for node in network.nodes:
            node.listens()
        for node in network.nodes:
            node.originates()
        urls = []
        for place in range(gateways):
            own = folder / f"gateway-{place}"
            own.mkdir()
            account = GATEWAY_ACCOUNT + place
            urls.append(
                start_gateway(
                    stack, network.settings, own, PASSWORD, *gateway_options, account=account
                )
            )
        yield Drill(network, urls, folder)
