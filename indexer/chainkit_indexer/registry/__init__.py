"""Follows the registry of nodes: each node's key and status, by block."""
