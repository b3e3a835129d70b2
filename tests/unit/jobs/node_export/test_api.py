"""A node is asked politely, and its answers are bounded."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from chainkit.errors import (
    ChainkitError,
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    RefusedRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit_jobs.node_export.api import ATTEMPTS, NodeApi
from support.audit.answering_node import AnsweringNode, Refusal

BUSY, AWAY = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE
PAGE = [b"one", b"two"]


def api(node: Any, page_rows: int = 1_000) -> tuple[NodeApi, list[float]]:
    slept: list[float] = []
    return NodeApi("node.example", node, page_rows, slept.append), slept


LOST = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)


@pytest.mark.parametrize("code", [BUSY, AWAY, *LOST])
def test_page__node_is_busy_or_away__is_asked_again_after_pauses_that_grow(
    code: grpc.StatusCode,
) -> None:
    node = AnsweringNode([Refusal(code)] * 3 + [PAGE])
    asking, slept = api(node)

    assert asking.page(7) == PAGE
    assert len(slept) == 3
    assert 0.25 <= slept[0] <= 0.5 <= slept[1] <= 1 <= slept[2] <= 2
    assert [(request.originators, request.after) for request in node.requests] == [([0], 7)] * 4


def test_page__too_much_at_once__half_as_many_are_asked_for_from_then_on() -> None:
    node = AnsweringNode([Refusal(BUSY), Refusal(AWAY), Refusal(BUSY), [b"one"], [b"two"]])
    asking, _ = api(node, page_rows=10)

    asking.page(0)
    asking.page(1)

    assert [request.limit for request in node.requests] == [10, 5, 5, 2, 2]


def test_page__refused_down_to_one__one_is_asked_for() -> None:
    node = AnsweringNode([Refusal(BUSY), Refusal(BUSY), [b"one"]])
    asking, _ = api(node, page_rows=1)

    asking.page(0)

    assert [request.limit for request in node.requests] == [1, 1, 1]


@pytest.mark.parametrize(
    ("code", "kind"),
    [(BUSY, RateLimited), (AWAY, EndpointUnavailable)],
)
def test_page__node_stays_away__ends_with_the_reason(
    code: grpc.StatusCode, kind: type[ChainkitError]
) -> None:
    node = AnsweringNode([Refusal(code, "come\nback later")] * (ATTEMPTS + 1))
    asking, slept = api(node)

    with pytest.raises(kind) as refused:
        asking.page(0)

    assert str(refused.value) == (
        f"node node.example: expected a page of envelopes, got {code.name} come\\x0aback later "
        f"(asked {ATTEMPTS} times)"
    )
    assert (len(node.requests), len(slept)) == (ATTEMPTS, ATTEMPTS - 1)


def test_page__node_refuses__is_not_asked_again() -> None:
    node = AnsweringNode([Refusal(grpc.StatusCode.UNIMPLEMENTED), PAGE])
    asking, slept = api(node)

    with pytest.raises(RefusedRequest, match="got UNIMPLEMENTED"):
        asking.page(0)

    assert slept == []


def test_page__no_message__is_an_error() -> None:
    asking, _ = api(lambda request: b"\xff\xff")

    with pytest.raises(InconsistentAnswer, match="expected a page of envelopes, got 2 other bytes"):
        asking.page(0)


def test_page__more_than_asked_for__is_an_error() -> None:
    asking, _ = api(lambda request: Envelopes(envelopes=PAGE).SerializeToString(), page_rows=1)

    with pytest.raises(InconsistentAnswer, match=r"at most the 1 envelopes .*, got 2"):
        asking.page(0)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "node.example",
        "ftp://node.example",
        "http://",
        "http://node.example:port",
        "http://node.example:99999",
        "http://name:secret@node.example",
        "http://node.example/path",
        "http://[::1",
    ],
)
def test_connect__no_address_of_a_node__is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL of the node: expected http://host:port"):
        NodeApi.connect(url)
