"""Endpoints that answer from memory, lie, break or stall; and a proxy that does so before anvil."""
