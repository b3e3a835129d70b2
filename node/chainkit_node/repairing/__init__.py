"""Differences between two nodes' logs, found by digests of ranges, and repaired."""
