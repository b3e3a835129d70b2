"""How fast a client verifies and orders what nodes answer."""
