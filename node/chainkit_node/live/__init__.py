"""Envelopes that were committed a moment ago, on their way to the open streams."""
