"""A gRPC proxy before a node or a gateway: it passes all on, and answers as a test says.

A test that takes over a method gets each request, and may ask the server behind: it drops, delays,
reorders and alters answers, and signs with a node's key. Nodes, which show a token, get the true
answers unless a test says so: the lies are for clients and gateways.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Self

import grpc

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.envelope import ServedEnvelope, parse_originator_envelope
from chainkit.protocol.methods import QUERY_ENVELOPES
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.node_token import NODE_TOKEN_KEY

SECONDS = 30.0
THREADS = 32
"""A stream takes one for as long as it is open."""
_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))

Ask = Callable[[bytes], bytes]
"""Asks the server behind; an error of it passes through."""
Answer = Callable[[bytes, Ask], bytes]
"""Answers a request in the server's place. Raises Dropped for no answer."""


class Dropped(Exception):
    """The answer is lost."""


class GrpcProxy:
    """Listens from the beginning of the block, and leads nowhere until it has a target."""

    def __init__(self, target: str = "", lies_to_nodes: bool = False) -> None:
        """Take the URL of the server behind."""
        self.lies_to_nodes = lies_to_nodes
        self.answers: dict[str, Answer] = {}
        """By the path of the method that is taken over."""
        self._channel: Any = None
        if target:
            self.lead_to(target)
        # A port that another proxy listens on must not be shared.
        options = (*_OPTIONS, ("grpc.so_reuseport", 0))
        self._server = grpc.server(ThreadPoolExecutor(THREADS), options=options)
        self._server.add_generic_rpc_handlers((_Handlers(self),))
        self.url = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()
        if self._channel is not None:
            self._channel.close()

    def lead_to(self, url: str) -> None:
        """Pass calls on to a server."""
        own = ("grpc.use_local_subchannel_pool", 1)
        self._channel = grpc.insecure_channel(url.removeprefix("http://"), (*_OPTIONS, own))

    def change(self, method: str, change: Callable[[bytes], bytes | None]) -> None:
        """Change each envelope of a method's answers, or leave it out."""

        def answer(request: bytes, ask: Ask) -> bytes:
            changed = map(change, Envelopes.FromString(ask(request)).envelopes)
            return Envelopes(envelopes=filter(None, changed)).SerializeToString()

        self.answers[method] = answer

    def ask(self, method: str, request: bytes) -> bytes:
        """Ask the server behind, as its client."""
        answer: bytes = self._channel.unary_unary(method)(request, timeout=SECONDS)
        return answer

    def pass_on(self, method: str, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Pass a call on, of one request or a stream, with one answer or a stream."""
        metadata = [each for each in context.invocation_metadata() if each[0] != "user-agent"]
        call = self._channel.stream_stream(method)(requests, metadata=metadata)
        context.add_callback(call.cancel)
        try:
            yield from call
        except grpc.RpcError as error:
            _abort(context, error)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, proxy: GrpcProxy) -> None:
        self._proxy = proxy

    def service(self, handler_call_details: Any) -> Any:
        proxy, method = self._proxy, handler_call_details.method
        answer = proxy.answers.get(method)
        is_node = NODE_TOKEN_KEY in dict(handler_call_details.invocation_metadata)
        if answer is None or (is_node and not proxy.lies_to_nodes):
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, context: proxy.pass_on(method, requests, context)
            )

        def answered(request: bytes, context: Any) -> bytes:
            try:
                return answer(request, lambda asked: proxy.ask(method, asked))
            except grpc.RpcError as error:
                _abort(context, error)
            except Dropped:
                context.abort(grpc.StatusCode.UNAVAILABLE, "dropped")
            raise AssertionError

        return grpc.unary_unary_rpc_method_handler(answered)


def _abort(context: Any, error: Any) -> None:
    """End a call as the server behind did, with the details of a refusal."""
    context.set_trailing_metadata(error.trailing_metadata() or ())
    context.abort(error.code(), error.details())


@contextmanager
def lying_node(
    url: str,
    left_out: Collection[int] = (),
    changed: Callable[[ServedEnvelope], bytes] | None = None,
) -> Iterator[str]:
    """Serve queries without some of the chain's sequence ids, and the others changed.

    Gives the address. Envelopes of other originators are passed on as they are.
    """
    with GrpcProxy(url, lies_to_nodes=True) as proxy:
        proxy.change(QUERY_ENVELOPES, of_chain(left_out, changed))
        yield proxy.url


def of_chain(
    left_out: Collection[int] = (), changed: Callable[[ServedEnvelope], bytes] | None = None
) -> Callable[[bytes], bytes | None]:
    """A change of answers: without some of the chain's sequence ids, and the others changed."""

    def change(envelope: bytes) -> bytes | None:
        try:
            served = parse_originator_envelope(envelope)
        except MalformedEnvelope:
            return envelope
        if served.sequence_id in left_out:
            return None
        return envelope if changed is None else changed(served)

    return change
