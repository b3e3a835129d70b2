"""Envelopes that other nodes originated: subscribed to, verified and stored (XIP-49 §3.2.3)."""
