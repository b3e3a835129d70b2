"""Which nodes should be disabled, by many pieces of evidence (XIP-49 §3.2.7)."""
