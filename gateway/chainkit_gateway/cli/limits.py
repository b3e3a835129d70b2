"""How much all clients of a gateway may hold open together: a JSON file, as a node's is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from chainkit.service.edge.configuration import EdgeLimits, EdgeTimes
from chainkit.service.limits_file import read_limits_file
from chainkit.service.open_files import fit, open_files
from chainkit.terminal.options import file_option
from chainkit_gateway.clients import OpenLimits


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """The sections of the file."""

    strangers: OpenLimits = field(default_factory=OpenLimits)
    edge: EdgeTimes = field(default_factory=EdgeTimes)

    def edge_limits(self) -> EdgeLimits:
        """Return Envoy's limits; that of connections fits the files that the process may open."""
        _, connections = fit(self.strangers.connections, *open_files())
        return EdgeLimits(**asdict(self.edge), connections=connections)


def read_gateway_limits(path: Path | None) -> GatewayLimits:
    """Read the limits; defaults where there is no file. Raises ConfigurationError."""
    if path is None:
        return GatewayLimits()
    return GatewayLimits(**read_limits_file(path, {"strangers": OpenLimits(), "edge": EdgeTimes()}))


limits_option = file_option(
    "--limits",
    "limits_path",
    "CHAINKIT_LIMITS",
    "Limits of connections and calls, and of Envoy, in JSON, such as "
    '{"strangers": {"connections": 500}, "edge": {"request_seconds": 20}}; docs/gateway.md lists '
    "all.",
)
"""Decorator: the file of limits."""
