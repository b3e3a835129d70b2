"""A node's QueryEnvelopes in memory: its answers, request by request or out of its store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from chainkit.protocol.envelope import ServedEnvelope, sign_originator_envelope
from chainkit.protocol.methods import QUERY_ENVELOPES
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.signatures import SigningKey


class Refusal(grpc.RpcError):
    """A status instead of an answer."""

    def __init__(self, code: grpc.StatusCode, details: str = "") -> None:
        super().__init__(code)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class Request:
    originators: list[int]
    after: int
    limit: int


def parsed(data: bytes) -> Request:
    request = message_api_pb2.QueryEnvelopesRequest.FromString(data)
    after = request.query.last_seen.node_id_to_sequence_id[0]
    return Request(list(request.query.originator_node_ids), after, request.limit)


class AnsweringNode:
    """Answers one thing after the other."""

    def __init__(self, answers: Sequence[Refusal | list[bytes]]) -> None:
        self.requests: list[Request] = []
        self._answers = iter(answers)

    def __call__(self, data: bytes) -> bytes:
        self.requests.append(parsed(data))
        answer = next(self._answers)
        if isinstance(answer, Refusal):
            raise answer
        return Envelopes(envelopes=answer).SerializeToString()


@dataclass
class StoringNode:
    """Answers stored envelopes by sequence id, in order, and no more than requested."""

    envelopes: Mapping[int, bytes]
    requests: list[Request] = field(default_factory=list)

    def __call__(self, data: bytes) -> bytes:
        request = parsed(data)
        self.requests.append(request)
        behind = [number for number in sorted(self.envelopes) if number > request.after]
        page = [self.envelopes[number] for number in behind[: request.limit]]
        return Envelopes(envelopes=page).SerializeToString()


@contextmanager
def answering(served: Mapping[tuple[int, int], ServedEnvelope], key: SigningKey) -> Iterator[str]:
    """Serve envelopes by originator and sequence id over gRPC, as any node of the network."""
    logs: dict[int, dict[int, bytes]] = {}
    for (originator_id, sequence_id), each in served.items():
        parts = each.unsigned_originator_envelope, each.transaction_hash, key
        logs.setdefault(originator_id, {})[sequence_id] = sign_originator_envelope(*parts)

    def page(data: bytes, context: Any) -> bytes:
        request = message_api_pb2.QueryEnvelopesRequest.FromString(data)
        [originator_id] = request.query.originator_node_ids
        after = request.query.last_seen.node_id_to_sequence_id[originator_id]
        log = sorted(logs[originator_id].items())
        behind = [envelope for number, envelope in log if number > after]
        return Envelopes(envelopes=behind[: request.limit]).SerializeToString()

    service, method = QUERY_ENVELOPES.lstrip("/").split("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(page)}
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None)
