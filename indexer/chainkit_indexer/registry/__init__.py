"""Follows the registry of nodes: who may serve, with which key, since which block."""
