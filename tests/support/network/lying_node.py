"""Stands before a node and changes its answers, as a node that lies would."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.envelope import ServedEnvelope, parse_originator_envelope
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from support.network.api import REPLICATION, Api


@contextmanager
def lying_node(
    url: str,
    left_out: Collection[int] = (),
    changed: Callable[[ServedEnvelope], bytes] | None = None,
) -> Iterator[str]:
    """Serve QueryEnvelopes without some of the chain's sequence ids, and the others changed.

    Gives the address. Envelopes of other originators are passed on as they are.
    """
    node = Api(url)

    def answered(envelope: bytes) -> bytes | None:
        try:
            served = parse_originator_envelope(envelope)
        except MalformedEnvelope:
            return envelope
        if served.sequence_id in left_out:
            return None
        return envelope if changed is None else changed(served)

    def query(request: bytes, _context: Any) -> bytes:
        answer = Envelopes.FromString(node.call("QueryEnvelopes", request))
        found = [answered(each) for each in answer.envelopes]
        return Envelopes(envelopes=[each for each in found if each]).SerializeToString()

    handlers = {"QueryEnvelopes": grpc.unary_unary_rpc_method_handler(query)}
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(REPLICATION, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
        node.close()
