"""How fast a node accounts for envelopes, and deletes what has expired."""
