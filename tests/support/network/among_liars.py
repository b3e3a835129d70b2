"""Three nodes and a gateway, each behind a proxy, and people whose clients ask all of them."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.nodes.preference import in_order_of_preference
from chainkit.protocol.chain_time import block_timestamp
from chainkit.protocol.envelope import (
    ServedEnvelope,
    sign_originator_envelope,
    stated_place,
    unsigned_originator_envelope,
)
from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES, QUERY_ENVELOPES
from chainkit.protocol.proto.envelopes_pb2 import ClientEnvelope, PayerEnvelope
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, PayloadEvent, Place, TopicKind
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from localnet.network import Network, publish_welcome, start_gateway
from support.chains.chain import Deployment
from support.network.grpc_proxy import Answer, Ask, GrpcProxy, of_chain
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.network.people import People
from support.network.real_nodes import PASSWORD, RealNetwork, RealNode, real_network, until

NODES = 3
SECONDS = 120
PAGE = 1_000


@dataclass
class AmongLiars:
    """A network, of whose nodes some lie while a test plays."""

    network: RealNetwork
    proxies: dict[int, GrpcProxy]
    """Those before the nodes, by the nodes' ids."""
    gateway: GrpcProxy
    engine: NodeEngine
    runner: asyncio.Runner

    def preferred(self, topic: bytes) -> list[RealNode]:
        """Return the nodes in the order in which clients of a topic ask them."""
        by_id = {each.node_id: each for each in self.network.nodes}
        return [by_id[each] for each in in_order_of_preference(topic, by_id)]

    @contextmanager
    def swallowing(self, topic: bytes) -> Iterator[list[Place]]:
        """Let the nodes sign what is published to a topic, and store nothing.

        Gives the places that they name.
        """
        places: list[Place] = []
        for node in self.network.nodes:
            proxy = self.proxies[node.node_id]
            proxy.answers[PUBLISH_PAYER_ENVELOPES] = swallow(node, [topic], places)
        yield places
        for proxy in self.proxies.values():
            del proxy.answers[PUBLISH_PAYER_ENVELOPES]

    def outgrow(self, place: Place) -> None:
        """Publish to a node on other topics until its log is beyond a place."""
        [node] = [each for each in self.network.nodes if each.node_id == place[0]]
        while True:
            other = publish_welcome(node.gate.url, node.node_id, secrets.token_bytes(32))
            if stated_place(other)[1] >= place[1]:
                return

    def of_chain(self, topic: bytes, count: int) -> list[int]:
        """Return the ids of the chain's payloads on a topic, once all nodes have so many."""

        def ids(node: RealNode) -> list[int]:
            places = map(stated_place, node.api.query(topics=[topic]))
            return [number for one, number in places if one == BLOCKCHAIN_ORIGINATOR_ID]

        until(lambda: all(len(ids(each)) == count for each in self.network.nodes))
        return ids(self.network.nodes[0])

    def hide(self, node_id: int, ids: Collection[int]) -> None:
        """Have a node leave payloads of the chain out of its answers."""
        self.proxies[node_id].change(QUERY_ENVELOPES, of_chain(left_out=ids))

    def make_up(self, node: RealNode, sequence_id: int) -> None:
        """Have a node sign another identity update in one's place, each time another one."""

        def made_up(served: ServedEnvelope) -> bytes:
            if served.sequence_id != sequence_id:
                unsigned, transaction = served.unsigned_originator_envelope, served.transaction_hash
                return sign_originator_envelope(unsigned, transaction, node.key)
            client = ClientEnvelope.FromString(served.client_envelope)
            client.identity_update.client_timestamp_ns = secrets.randbits(60)
            inbox_id = client.aad.target_topic[1:]
            payload, place = client.SerializeToString(), (sequence_id, BLOCKCHAIN_ORIGINATOR_ID)
            event = PayloadEvent(TopicKind.IDENTITY_UPDATE, inbox_id, payload, *place)
            timestamp = block_timestamp(served.originator_ns)
            unsigned = unsigned_originator_envelope(event, timestamp)
            return sign_originator_envelope(unsigned, secrets.token_bytes(32), node.key)

        self.proxies[node.node_id].change(QUERY_ENVELOPES, of_chain(changed=made_up))

    def play(self, play: Callable[[People], Awaitable[None]], seconds: float = SECONDS) -> None:
        """Play with new people on the clients' event loop; afterwards no node lies."""
        first, settings = self.network.nodes[0], self.network.settings
        record = read_deployment_record(settings.record_path)
        chain = Chain(Endpoint.connect(settings.rpc_url), record, frozenset({0}))
        served = Network(first.node_id, first.gate.url, self.gateway.url)
        folder = Path(tempfile.mkdtemp(dir=self.network.folder))

        async def run() -> None:
            async with AsyncExitStack() as stack, asyncio.timeout(seconds):
                await play(People(stack, chain, served, self.engine, folder))

        try:
            self.runner.run(run())
        finally:
            for proxy in (*self.proxies.values(), self.gateway):
                proxy.answers.clear()


@contextmanager
def among_liars(deployment: Deployment, folder: Path) -> Iterator[AmongLiars]:
    """Start the network; all ends with the block."""
    with ExitStack() as stack:
        network = stack.enter_context(real_network(deployment, folder))
        proxies = {}
        for _ in range(NODES):
            proxy = stack.enter_context(GrpcProxy())

            def before(url: str, proxy: GrpcProxy = proxy) -> str:
                proxy.lead_to(url)
                return proxy.url

            proxies[network.add(before=before).node_id] = proxy
        for node in network.nodes:
            node.listens()
        for node in network.nodes:
            node.originates()
        gateway_url = start_gateway(stack, network.settings, folder, PASSWORD)
        gateway = stack.enter_context(GrpcProxy(gateway_url))
        engine = stack.enter_context(NodeEngine())
        runner = stack.enter_context(asyncio.Runner())
        yield AmongLiars(network, proxies, gateway, engine, runner)


def last_held(node: RealNode, originator_id: int) -> int:
    """Return the highest id that a node has of an originator, 0 where it has none."""
    held = node.api.query(originators=[originator_id], limit=PAGE)
    return max((stated_place(each)[1] for each in held), default=0)


def swallow(node: RealNode, topics: Collection[bytes], places: list[Place]) -> Answer:
    """Have a node sign what is published to some topics, and store nothing; give the places."""
    signs = Originator(node.node_id, node.key)

    def answer(request: bytes, ask: Ask) -> bytes:
        [paid] = Envelopes.FromString(request).envelopes
        payer = PayerEnvelope.FromString(paid)
        client = ClientEnvelope.FromString(payer.unsigned_client_envelope)
        if client.aad.target_topic not in topics:
            return ask(request)
        place = node.node_id, 1 + last_held(node, node.node_id)
        places.append(place)
        seconds = (time.time_ns() - BEGIN_NS) / SECOND_NS
        return Envelopes(envelopes=[signs.signed(place[1], seconds, paid)]).SerializeToString()

    return answer
