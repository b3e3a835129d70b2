"""Payloads that this node gives a sequence id: judged, numbered, signed and stored, once."""
