"""Verifies answers of nodes before any use (XIP-49 §3.3.4).

Pure: bytes, keys, clock and held envelopes are arguments. An answer that nobody signed is refused,
and is no evidence against the node; a signed envelope that breaks a rule is a breach.
"""
