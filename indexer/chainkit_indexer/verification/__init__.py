"""Stored rows, compared with the chain again."""
