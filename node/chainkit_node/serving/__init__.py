"""Answers to readers and payers over gRPC: stored bytes go out as they are stored."""
