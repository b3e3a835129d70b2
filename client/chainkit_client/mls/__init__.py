"""Messaging Layer Security (RFC 9420) behind a narrow interface: pure functions over bytes."""
