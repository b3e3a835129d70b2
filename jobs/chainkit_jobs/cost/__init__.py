"""Costs of a chain: one row per transaction, grouped by sender, kind, time and size."""
