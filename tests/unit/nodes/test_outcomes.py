"""A node's errors, told apart by whether it can have stored what it was sent."""

import grpc
import pytest
from google.rpc import status_pb2
from grpc.aio import AioRpcError, Metadata

from chainkit.errors import EndpointUnavailable, RefusedRequest
from chainkit.nodes.outcomes import (
    Conflict,
    ConnectionLost,
    NodeLost,
    Unavailable,
    as_endpoint_error,
    sorted_out,
)
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import MOST_PASSED_ON, STATUS_KEY, PassedOn

Code = grpc.StatusCode
STATUS = b"a google.rpc.Status"


def error(code: Code, words: str, status: bytes | None = None) -> AioRpcError:
    trailing = Metadata() if status is None else Metadata((STATUS_KEY, status))
    return AioRpcError(code, Metadata(), trailing, words)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.ABORTED, STATUS),
        (Code.INVALID_ARGUMENT, None),
        (Code.UNAVAILABLE, STATUS),
        (Code.RESOURCE_EXHAUSTED, STATUS),
    ],
)
def test_sorted_out__node_said_no__is_passed_on_as_it_said_it(
    code: Code, status: bytes | None
) -> None:
    refusal = sorted_out("node 100", error(code, "behind", status))

    assert isinstance(refusal, PassedOn)
    assert (refusal.code, str(refusal), refusal.details) == (code, "behind", status)


def status_with(cursor: dict[int, int]) -> bytes:
    """As a node writes it."""
    status = status_pb2.Status()
    status.details.add().Pack(envelopes_pb2.Cursor(node_id_to_sequence_id=cursor))
    return status.SerializeToString()


@pytest.mark.conforms("C17")
def test_sorted_out__409_with_a_cursor__is_a_conflict_that_has_it() -> None:
    conflict = sorted_out("node 100", error(Code.ABORTED, "behind", status_with({0: 7, 100: 3})))

    assert isinstance(conflict, Conflict)
    assert conflict.cursor == {0: 7, 100: 3}


@pytest.mark.conforms("C17")
def test_sorted_out__503__is_told_apart_from_other_refusals() -> None:
    assert isinstance(sorted_out("node 100", error(Code.UNAVAILABLE, "lags", STATUS)), Unavailable)
    for code in (Code.ABORTED, Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED):
        assert type(sorted_out("node 100", error(code, "no", STATUS))) is PassedOn


@pytest.mark.parametrize(
    ("code", "status"),
    [
        # gRPC's own words for a connection that broke, or an answer that is too large.
        (Code.UNAVAILABLE, None),
        (Code.RESOURCE_EXHAUSTED, None),
        (Code.DEADLINE_EXCEEDED, None),
        (Code.INTERNAL, STATUS),
        (Code.UNKNOWN, STATUS),
    ],
)
def test_sorted_out__answer_may_be_lost__is_no_refusal(code: Code, status: bytes | None) -> None:
    lost = sorted_out("node 100", error(code, "Socket closed", status))

    assert isinstance(lost, NodeLost)
    assert str(lost) == "node 100: expected an answer, got Socket closed"


# A node that was killed: gRPC itself, Envoy and nginx, HAProxy.
@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.INTERNAL, Code.UNKNOWN])
def test_sorted_out__end_without_a_status__is_a_lost_connection_whatever_its_code(
    code: Code,
) -> None:
    ended = error(code, "upstream connect error")

    assert type(sorted_out("node 100", ended)) is ConnectionLost
    assert type(as_endpoint_error("node 100", "a page", ended)) is EndpointUnavailable


@pytest.mark.parametrize("code", [Code.INTERNAL, Code.UNKNOWN])
def test_sorted_out__error_with_a_status__is_the_nodes_own(code: Code) -> None:
    failed = error(code, "an error of the node", STATUS)

    assert type(sorted_out("node 100", failed)) is NodeLost
    assert type(as_endpoint_error("node 100", "a page", failed)) is RefusedRequest


def test_passed_on__longer_than_grpc_carries__is_cut() -> None:
    long = "w" * (MOST_PASSED_ON + 1)

    assert str(PassedOn(Code.ABORTED, long, STATUS)) == long[:-1]
    assert PassedOn(Code.ABORTED, long, STATUS).details is None
    assert PassedOn(Code.ABORTED, "short", bytes(MOST_PASSED_ON + 1)).details is None


def test_caller__token__shows_in_no_repr() -> None:
    assert "secret" not in repr(Caller("ipv4:127.0.0.1:1", "Bearer secret"))
