"""The application that Envoy calls: the command line, started again inside Envoy's process."""

from __future__ import annotations

from chainkit.cli.main import main
from chainkit.service.edge.inside import Inside

application = Inside(main).application
