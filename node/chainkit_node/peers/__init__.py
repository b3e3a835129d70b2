"""The other nodes, as the registry lists them: who they are, and connections to them."""
