"""Misbehavior of nodes (XIP-49 §3.2.7): its types, its reports, and the proofs in them."""
