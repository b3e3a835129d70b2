"""Envoy's limits for callers of a node, from the node's own limits."""

from __future__ import annotations

from dataclasses import asdict

from chainkit.service.edge.configuration import EdgeLimits, EdgeTimes
from chainkit.service.open_files import fit, open_files
from chainkit_node.serving.gate import streams_of_connection
from chainkit_node.settings import NodeLimits, StrangerLimits


def edge_limits(strangers: StrangerLimits, nodes: NodeLimits, times: EdgeTimes) -> EdgeLimits:
    """Return Envoy's limits; those of connections fit the files that the process may open."""
    _, connections = fit(strangers.connections, *open_files())
    streams = streams_of_connection(strangers, nodes)
    return EdgeLimits(**asdict(times), connections=connections, streams_of_connection=streams)
