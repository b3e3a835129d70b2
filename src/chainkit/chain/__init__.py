"""JSON-RPC, typed and doubted: the only package that talks to an endpoint.

``heads`` is imported by name, where blocks are followed: it alone needs WebSockets.
"""

from chainkit.chain.client import BATCH_SIZE, RetryPolicy, Traffic
from chainkit.chain.endpoint import Endpoint
from chainkit.chain.logs import ANY_LOG, LogFilter
from chainkit.chain.member import EndpointState, EndpointStatus
from chainkit.chain.parsing import parse_header, parse_integer, parse_log
from chainkit.chain.pool import EndpointPool, NoEndpointAvailable

__all__ = [
    "ANY_LOG",
    "BATCH_SIZE",
    "Endpoint",
    "EndpointPool",
    "EndpointState",
    "EndpointStatus",
    "LogFilter",
    "NoEndpointAvailable",
    "RetryPolicy",
    "Traffic",
    "parse_header",
    "parse_integer",
    "parse_log",
]
