"""Connections to nodes and gateways, for client, gateway, node, audit and council."""
