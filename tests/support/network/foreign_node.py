"""A node of another make, in a process of its own: it has what XIP-49 demands, and nothing more.

It originates what payers send it, unchecked, and holds the envelopes of other nodes. Its streams
have headers, no heartbeats, and news alone where a subscription has no cursor. It has neither
comparisons, topic heads nor reports, and serves no payload of the chain.

The test speaks to the process by three methods of a service of its own::

    /Foreign/Begin    {"node_id": 200, "peers": {"100": "http://…:5050"}, "victim": 100}
    /Foreign/Twice    signs two envelopes under the next id: the victim gets the other one
    /Foreign/Streams  {"100": 1}: how many streams each node, by its token, has ever opened here
    /Foreign/Asked    [12, 0]: queries and subscriptions that ever came, and those without a cursor
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import grpc

from chainkit.protocol.envelope_queries import envelopes_behind
from chainkit.protocol.methods import SUBSCRIBE_ENVELOPES
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    parse_originated,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.node_token import NODE_TOKEN_KEY, read_token
from chainkit.signatures import SigningKey
from localnet.process import end, end_with_parent
from support import publishes
from support.network.api import REPLICATION, Api

CONTROL = "Foreign"
PAGE = 1_000
AGAIN_SECONDS = 0.5
STRANGER = 0


class ForeignNode:
    """The logs of the process, and its methods; bytes in, bytes out."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self._node_id = 0
        self._victim = STRANGER
        self._logs: dict[int, dict[int, bytes]] = {}
        """Envelopes by originator and id, in the order of the ids."""
        self._others: dict[int, bytes] = {}
        """The envelopes that the victim gets, by ids of this node."""
        self._last_ns = 0
        self._streams: Counter[int] = Counter()
        self._asked = self._without_cursor = 0
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, request: bytes, _: Any) -> bytes:
        """Learn who this node is, and follow the peers."""
        content = json.loads(request)
        self._node_id, self._victim = content["node_id"], content["victim"]
        for peer_id, url in content["peers"].items():
            self._tasks.append(asyncio.create_task(self._follow(int(peer_id), url)))
        return b""

    async def twice(self, _request: bytes, _: Any) -> bytes:
        """Sign two under one id."""
        one, other = (publishes.paid(publishes.group_message(), self._node_id) for _ in range(2))
        sequence_id, now_ns = self._next()
        self._others[sequence_id] = self._signed(sequence_id, now_ns + 1, other)
        self._hold(self._node_id, [self._signed(sequence_id, now_ns, one)])
        return json.dumps(sequence_id).encode()

    async def streams(self, _request: bytes, _: Any) -> bytes:
        return json.dumps(self._streams).encode()

    async def asked(self, _request: bytes, _: Any) -> bytes:
        return json.dumps([self._asked, self._without_cursor]).encode()

    async def publish(self, request: bytes, _: Any) -> bytes:
        """Originate payloads, whatever they are."""
        new = []
        for each in Envelopes.FromString(request).envelopes:
            new.append(self._signed(*self._next(), each))
            self._hold(self._node_id, new[-1:])
        return Envelopes(envelopes=new).SerializeToString()

    async def query(self, request: bytes, context: Any) -> bytes:
        asked = message_api_pb2.QueryEnvelopesRequest.FromString(request)
        self._count(asked.query)
        seen = asked.query.last_seen.node_id_to_sequence_id
        cursor = {each: seen.get(each, 0) for each in asked.query.originator_node_ids}
        found = self._behind(cursor, _reader(context))[: asked.limit or PAGE]
        return Envelopes(envelopes=found).SerializeToString()

    async def subscribe(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        query = message_api_pb2.SubscribeEnvelopesRequest.FromString(request).query
        self._count(query)
        seen = query.last_seen.node_id_to_sequence_id
        # Without a cursor, what is held already is no news.
        cursor = {
            each: seen[each] if each in seen else len(self._logs.get(each, ()))
            for each in query.originator_node_ids
        }
        reader = _reader(context)
        self._streams[reader] += 1
        await context.send_initial_metadata(())
        while True:
            changed = self._changed
            if found := self._behind(cursor, reader):
                yield Envelopes(envelopes=found).SerializeToString()
                for each in found:
                    stated = parse_originated(each).envelope
                    cursor[stated.originator_id] = stated.sequence_id
            else:
                await changed.wait()

    async def _follow(self, peer_id: int, url: str) -> None:
        """Take a peer's own envelopes, behind what is held of them."""
        self._logs[peer_id] = {}
        async with grpc.aio.insecure_channel(url.removeprefix("http://")) as channel:
            while True:
                query = envelopes_behind(peer_id, max(self._logs[peer_id], default=0))
                request = message_api_pb2.SubscribeEnvelopesRequest(query=query)
                subscribe: Any = channel.unary_stream(SUBSCRIBE_ENVELOPES)
                with suppress(grpc.aio.AioRpcError):
                    async for frame in subscribe(request.SerializeToString()):
                        self._hold(peer_id, Envelopes.FromString(frame).envelopes)
                await asyncio.sleep(AGAIN_SECONDS)

    def _count(self, query: message_api_pb2.EnvelopesQuery) -> None:
        self._asked += 1
        self._without_cursor += not query.HasField("last_seen")

    def _next(self) -> tuple[int, int]:
        self._last_ns = max(time.time_ns(), self._last_ns + 2)
        return len(self._logs.get(self._node_id, ())) + 1, self._last_ns

    def _signed(self, sequence_id: int, now_ns: int, payload: bytes) -> bytes:
        stated = OriginatedEnvelope(self._node_id, sequence_id, now_ns, payload, None)
        return sign_originated(unsigned_originated(stated), self._key)

    def _hold(self, originator_id: int, envelopes: Any) -> None:
        log = self._logs.setdefault(originator_id, {})
        for each in envelopes:
            log.setdefault(parse_originated(each).envelope.sequence_id, each)
        self._changed.set()
        self._changed = asyncio.Event()

    def _behind(self, cursor: Mapping[int, int], reader: int) -> list[bytes]:
        """Return a page of each log behind an id, as a reader gets it."""
        found = []
        for originator_id, after in cursor.items():
            log = self._logs.get(originator_id, {})
            ids = range(after + 1, min(after + PAGE, len(log)) + 1)
            is_lie = originator_id == self._node_id and reader == self._victim
            others = self._others if is_lie else {}
            found += [others.get(each, log[each]) for each in ids]
        return found


def _reader(context: Any) -> int:
    """Return which node asks, by its token."""
    token = dict(context.invocation_metadata()).get(NODE_TOKEN_KEY)
    return STRANGER if token is None else read_token(str(token)).subject


async def _serve() -> None:
    """Read a key from the input, print the port, and serve until the process is ended."""
    node = ForeignNode(SigningKey(bytes.fromhex(sys.stdin.readline())))
    unary: dict[str, dict[str, Callable[[bytes, Any], Awaitable[bytes]]]] = {
        REPLICATION: {"PublishPayerEnvelopes": node.publish, "QueryEnvelopes": node.query},
        CONTROL: {
            "Begin": node.begin,
            "Twice": node.twice,
            "Streams": node.streams,
            "Asked": node.asked,
        },
    }
    # With gRPC's own options, as most nodes have them.
    server = grpc.aio.server()
    for service, methods in unary.items():
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(each) for name, each in methods.items()
        }
        if service == REPLICATION:
            handlers["SubscribeEnvelopes"] = grpc.unary_stream_rpc_method_handler(node.subscribe)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


class ForeignProcess:
    """The process, as the test drives it."""

    def __init__(self, key: SigningKey, port: int) -> None:
        self.key = key
        self.url = f"http://127.0.0.1:{port}"
        self.node_id = 0
        self.api = Api(self.url, is_own_connection=True)

    def begin(self, node_id: int, peers: Mapping[int, str], victim: int) -> None:
        """Have it follow peers, by their URLs; ``victim`` is the node that it lies to."""
        self.node_id = node_id
        content = {"node_id": node_id, "peers": peers, "victim": victim}
        self.api.call("Begin", json.dumps(content).encode(), CONTROL)

    def sign_twice(self) -> int:
        """Have it sign two under its next id; return the id."""
        return int(json.loads(self.api.call("Twice", b"", CONTROL)))

    def publish(self, count: int, pause_seconds: float = 0.0) -> None:
        """Have it originate some welcomes, one after the other."""
        for _ in range(count):
            welcome = publishes.welcome(os.urandom(32))
            self.api.publish(publishes.paid(welcome, self.node_id))
            time.sleep(pause_seconds)

    def streams(self) -> dict[int, int]:
        """Return how many streams each node has ever opened there."""
        answer = json.loads(self.api.call("Streams", b"", CONTROL))
        return {int(each): count for each, count in answer.items()}

    def holds(self, originator_id: int) -> list[bytes]:
        """Return an originator's envelopes, asked for with a cursor."""
        return self.api.query(originators=[originator_id], cursor={originator_id: 0})

    def asked(self) -> tuple[int, int]:
        """Return how many questions for envelopes ever came, and how many had no cursor."""
        number, without_cursor = json.loads(self.api.call("Asked", b"", CONTROL))
        return number, without_cursor


@contextmanager
def foreign_process(secret: bytes) -> Iterator[ForeignProcess]:
    """Run a node of another make until the end of the block; it begins when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.network.foreign_node"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(f"{secret.hex()}\n")
        process.stdin.flush()
        foreign = ForeignProcess(SigningKey(secret), int(process.stdout.readline()))
        yield foreign
        foreign.api.close()
    finally:
        end(process)
        process.stdin.close()
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(_serve())
