"""Stands before a node and leaves envelopes out of its answers, as a node that lies would."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from support.network.api import REPLICATION, Api


@contextmanager
def lying_node(url: str, left_out: Collection[int]) -> Iterator[str]:
    """Serve QueryEnvelopes of originator 0 without some sequence ids; give the address."""
    node = Api(url)

    def query(request: bytes, _context: Any) -> bytes:
        answer = Envelopes.FromString(node.call("QueryEnvelopes", request))
        kept = [
            each
            for each in answer.envelopes
            if parse_originator_envelope(each).sequence_id not in left_out
        ]
        return Envelopes(envelopes=kept).SerializeToString()

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
