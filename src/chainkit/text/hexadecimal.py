"""Bytes as people and scripts read them."""

from __future__ import annotations

from binascii import unhexlify


def hex0x(value: bytes) -> str:
    """Write bytes as people and scripts read them: 0x and hex digits."""
    return "0x" + value.hex()


def parse_bytes(value: str, length: int | None = None) -> bytes:
    """Return the bytes of a 0x-prefixed string. Raises ValueError for another length."""
    if value[:2] != "0x":
        raise ValueError(f"expected 0x and hex digits, got {value[:20]!r}")
    try:
        # ``bytes.fromhex`` would skip spaces, and take half as long again.
        decoded = unhexlify(value[2:])
    except ValueError:
        raise ValueError(f"expected 0x and hex digits, got {value[:20]!r}") from None
    if length is not None and len(decoded) != length:
        raise ValueError(f"expected {length} bytes, got {len(decoded)}")
    return decoded
