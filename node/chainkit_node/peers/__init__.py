"""The other nodes, as the registry lists them, and connections to them."""
