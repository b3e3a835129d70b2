"""The causal order of a topic's envelopes, without I/O and clock (XIP-49 §3.3.5)."""
