"""A node's QueryEnvelopes in memory: what it answers, request by request or out of its store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import grpc

from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes


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
    """Answers what it stores by sequence id, in order, and no more than it is asked for."""

    envelopes: Mapping[int, bytes]
    requests: list[Request] = field(default_factory=list)

    def __call__(self, data: bytes) -> bytes:
        request = parsed(data)
        self.requests.append(request)
        behind = [number for number in sorted(self.envelopes) if number > request.after]
        page = [self.envelopes[number] for number in behind[: request.limit]]
        return Envelopes(envelopes=page).SerializeToString()
