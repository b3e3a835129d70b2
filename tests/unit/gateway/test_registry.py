"""Nodes follow the registry, and stay where it cannot be read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from chainkit.errors import ConfigurationError, EndpointUnavailable
from chainkit.nodes.connection import NodeEntry
from chainkit.nodes.pool import Nodes
from chainkit_gateway.registry import RegistryWatch, readdressed

KEY = b"\4" + bytes(64)
A, B, C = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
AWAY = EndpointUnavailable("registry", "an answer", "none")
NOBODY = ConfigurationError("nodes", "at least one that is enabled", "none")


def entries(urls: Mapping[int, str]) -> Mapping[int, NodeEntry]:
    return {each: NodeEntry(url, KEY) for each, url in urls.items()}


def followed(*answers: Mapping[int, str] | Exception) -> tuple[Nodes, list[object]]:
    """Nodes after these answers of the registry; and the connections to node 100 after each."""
    left = list(answers)

    def read() -> Mapping[int, NodeEntry]:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return entries(answer)

    async def follow() -> tuple[Nodes, list[object]]:
        nodes = Nodes(entries({100: A, 200: B}))
        connections: list[object] = [nodes.node(100)]
        watch = RegistryWatch(read, nodes)
        for _ in answers:
            await watch.refresh()
            connections.append(nodes.node(100))
        await nodes.close()
        return nodes, connections

    return asyncio.run(follow())


def test_refresh__other_nodes__are_added_removed_and_readdressed() -> None:
    nodes, (first, same, other) = followed({100: A, 300: C}, {100: B, 300: C})

    assert nodes.urls == {100: B, 300: C}
    assert nodes.node(200) is None
    assert first is same
    assert other is not same
    assert {each.node_id for each in nodes.for_topic(b"t")} == {100, 300}


@pytest.mark.parametrize("fault", [AWAY, NOBODY])
def test_refresh__registry_cannot_be_read__keeps_the_last_and_says_so_once(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "chainkit"):
        nodes, _ = followed(fault, fault, {100: A, 200: B}, fault)

    assert nodes.urls == {100: A, 200: B}
    told = [each.message for each in caplog.records]
    assert told == [f"registry: keeping the last nodes: {fault}"] * 2


def test_refresh__url_that_cannot_be_used__leaves_out_that_node_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = {100: A, 200: "ftp://elsewhere", 300: C}
    with caplog.at_level(logging.WARNING, "chainkit"):
        nodes, _ = followed(bad, bad)

    assert nodes.urls == {100: A, 300: C}
    assert len([each for each in caplog.records if "is left out" in each.message]) == 1


@pytest.mark.parametrize("url", [A, "http://[::1]:5", "http://169.254.169.254:80"])
def test_refresh__url_of_this_machine_in_a_network_of_others__leaves_out_that_node_alone(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "chainkit"):
        nodes, _ = followed({100: "https://a.example.org", 200: url})

    assert nodes.urls == {100: "https://a.example.org"}
    [record] = caplog.records
    assert "expected a host that others reach, got one on this machine" in record.message


@pytest.mark.parametrize("url", ["ftp://a", "http://", "127.0.0.1:5", "http://a:b", "http://[::1"])
def test_nodes__url_given_that_cannot_be_used__is_refused(url: str) -> None:
    async def make() -> None:
        Nodes(entries({100: url}))

    refused: Callable[[], object] = lambda: asyncio.run(make())  # noqa: E731
    with pytest.raises(ConfigurationError, match="URL of node 100"):
        refused()


def test_given_nodes__keep_the_registry_s_keys_and_must_be_listed() -> None:
    listed = entries({100: A, 200: B})

    assert readdressed(listed, {200: C}) == {200: NodeEntry(C, KEY)}
    with pytest.raises(ConfigurationError, match="an enabled node of the registry: 100, 200"):
        readdressed(listed, {200: C, 300: C})
