"""Nodes and gateways, as all that ask them do so: client, gateway, node, audit and council."""
