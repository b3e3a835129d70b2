"""Reconciliation: what nodes serve against what the chain demands."""
