from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.service.edge.configuration import (
    EdgeLimits,
    EdgePlaces,
    EdgeSettings,
    EdgeTimes,
    envoy_configuration,
)
from chainkit_node.serving.edge import edge_limits
from chainkit_node.settings import NodeLimits, StrangerLimits

PLACES = EdgePlaces(Path("/folder"), Path("/pyvoy.so"))
SETTINGS = EdgeSettings([("127.0.0.1", 5051), ("::1", 5051)], has_tls=False)


def values(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return [each for value in content.values() for each in values(value)]
    if isinstance(content, list):
        return [each for value in content for each in values(value)]
    return [content]


@pytest.mark.parametrize("name", [each.name for each in fields(EdgeLimits)])
def test_configuration__each_limit__is_in_it(name: str) -> None:
    # A value that nothing else has; bytes of headers are whole KiB.
    other = 77 << 10 if name == "header_bytes" else 1_234_567
    wanted = {"header_bytes": 77}.get(name, f"{other}s" if "seconds" in name else other)
    settings = replace(SETTINGS, has_tls=True, limits=replace(EdgeLimits(), **{name: other}))

    assert wanted in values(envoy_configuration(settings, PLACES))
    assert wanted not in values(envoy_configuration(replace(SETTINGS, has_tls=True), PLACES))


def test_configuration__plain_text_and_tls__differ_in_the_transport_alone() -> None:
    plain, tls = (
        envoy_configuration(replace(SETTINGS, has_tls=each), PLACES) for each in (False, True)
    )
    [chain] = tls["static_resources"]["listeners"][0]["filter_chains"]

    assert "/folder/certificate.json" in values(chain.pop("transport_socket"))
    chain.pop("transport_socket_connect_timeout")
    assert plain == tls


def test_configuration__several_addresses__listens_at_all() -> None:
    [listener] = envoy_configuration(SETTINGS, PLACES)["static_resources"]["listeners"]
    further = [each["address"] for each in listener["additional_addresses"]]

    places = [each["socket_address"] for each in (listener["address"], *further)]
    assert [(each["address"], each["port_value"]) for each in places] == SETTINGS.addresses


def test_edge_limits__of_a_node__are_those_of_its_limits_file() -> None:
    few, none = (StrangerLimits(streams_of_one=a, connections=b) for a, b in ((300, 20), (0, 0)))
    limits = edge_limits(few, NodeLimits(), EdgeTimes(quiet_seconds=30))
    unlimited = edge_limits(none, NodeLimits(), EdgeTimes())

    assert (limits.streams_of_connection, limits.connections) == (400, 20)
    assert limits.quiet_seconds == 30
    assert (unlimited.streams_of_connection, unlimited.connections) == (0, 0)
