"""Limits of a gateway's clients: the file and its defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import ConfigurationError
from chainkit.service.edge.configuration import EdgeLimits, EdgeTimes
from chainkit_gateway.cli.limits import GatewayLimits, read_gateway_limits
from chainkit_gateway.clients import OpenLimits


def test_read_gateway_limits__no_file__has_defaults() -> None:
    assert read_gateway_limits(None) == GatewayLimits(OpenLimits(), EdgeTimes())


def test_read_gateway_limits__both_sections__are_envoys_and_the_servers(tmp_path: Path) -> None:
    path = tmp_path / "limits.json"
    sections = {"strangers": {"connections": 20, "calls": 0}, "edge": {"quiet_seconds": 30}}
    path.write_text(json.dumps(sections))

    found = read_gateway_limits(path)

    assert found.strangers == OpenLimits(connections=20, calls=0)
    assert found.edge_limits() == EdgeLimits(quiet_seconds=30, connections=20)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"nodes": {}}, "(nodes)"),
        ({"strangers": {"streams": 1}}, "(strangers.streams)"),
        ({"edge": {"quiet_seconds": 0}}, "(edge.quiet_seconds)"),
    ],
)
def test_read_gateway_limits__unknown_field_or_value__names_it(
    tmp_path: Path, content: Any, place: str
) -> None:
    path = tmp_path / "limits.json"
    path.write_text(json.dumps(content))

    with pytest.raises(ConfigurationError) as caught:
        read_gateway_limits(path)

    assert place in str(caught.value)
