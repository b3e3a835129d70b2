"""Reports of misbehavior that this node hosts: its own, and those of clients (XIP-49 §3.2.8)."""
