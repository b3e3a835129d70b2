"""The set of nodes that a council wants, and the calls that lead to this set."""

from chainkit.council.registry_plan.desired import DesiredNode, read_desired_nodes
from chainkit.council.registry_plan.difference import (
    FieldDifference,
    NodeDifference,
    RegistryDifference,
    calls_towards,
    compare_nodes,
)

__all__ = [
    "DesiredNode",
    "FieldDifference",
    "NodeDifference",
    "RegistryDifference",
    "calls_towards",
    "compare_nodes",
    "read_desired_nodes",
]
