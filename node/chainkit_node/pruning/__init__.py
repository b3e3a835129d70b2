"""Deletes what has expired and was paid for, in batches beside a running node."""
