"""Decodes RLP. A hash was compared with these bytes before: only a chain can have written them."""

from __future__ import annotations

from collections.abc import Sequence

import rlp

from chainkit.errors import MalformedData
from chainkit.ethereum.row import Item


def decoded_items(data: bytes, subject: str, names: Sequence[str]) -> dict[str, Item]:
    """Return the items of an RLP list by their names, as many as the list has from the first on.

    Raises MalformedData for anything but a list, or one of more items than names.
    """
    try:
        items = rlp.decode(data)
    except (rlp.exceptions.DecodingError, RecursionError) as error:
        raise MalformedData(subject, "RLP", type(error).__name__) from error
    if isinstance(items, bytes) or len(items) > len(names):
        got = "bytes" if isinstance(items, bytes) else f"{len(items)} items"
        raise MalformedData(subject, f"a list of up to {len(names)} items", got)
    return dict(zip(names, items, strict=False))


def bytes_of(items: dict[str, Item], name: str, subject: str, length: int | None = None) -> bytes:
    """Return an item that is bytes, ``length`` of them if given. Raises MalformedData if not."""
    item = items.get(name)
    if not isinstance(item, bytes) or (length is not None and len(item) != length):
        expected = "bytes" if length is None else f"{length} bytes"
        got = f"{len(item)} bytes" if isinstance(item, bytes) else "none"
        raise MalformedData(subject, f"{name}: {expected}", got)
    return item


def integer_of(items: dict[str, Item], name: str, subject: str) -> int:
    """Return an item that is an integer from 0. Raises MalformedData for anything else."""
    return int.from_bytes(bytes_of(items, name, subject), "big")
