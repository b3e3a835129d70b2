"""Keeps signed transactions while they may be dropped, and sends dropped ones again."""
