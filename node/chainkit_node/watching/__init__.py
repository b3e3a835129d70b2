"""Asks other nodes as a client would, and compares what they serve with what is held (§3.2.7)."""
