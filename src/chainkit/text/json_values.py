"""Values in the form that ``--json`` prints."""

from __future__ import annotations

from typing import Any

from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference


def reference_as_json(block: BlockReference) -> dict[str, Any]:
    """Write a block as scripts read it."""
    return {"number": block.number, "hash": hex0x(block.hash)}
