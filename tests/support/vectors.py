"""The golden vectors, which another implementation computed (tools/vectors)."""

import json
from typing import Any

from support.project import TESTS

VECTORS = TESTS / "vectors"


def load(name: str) -> Any:
    """The content of tests/vectors/``name``.json."""
    return json.loads((VECTORS / f"{name}.json").read_text())


def from_hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def case_name(case: object) -> str | None:
    """Name a parametrized case as its vector does."""
    return str(case.get("name") or case.get("reason")) if isinstance(case, dict) else None
