"""JSON-RPC, typed and doubted: the only package that talks to an endpoint."""

from chainkit.chain.check import check_deployment
from chainkit.chain.client import BATCH_SIZE, RetryPolicy
from chainkit.chain.endpoint import Endpoint
from chainkit.chain.parsing import parse_bytes, parse_header, parse_integer, parse_log

__all__ = [
    "BATCH_SIZE",
    "Endpoint",
    "RetryPolicy",
    "check_deployment",
    "parse_bytes",
    "parse_header",
    "parse_integer",
    "parse_log",
]
