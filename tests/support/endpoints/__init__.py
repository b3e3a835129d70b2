"""Endpoints that answer from memory, lie, break or stall; and the proxy that does so before an anvil."""
