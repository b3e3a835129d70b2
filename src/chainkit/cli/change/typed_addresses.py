"""Addresses that a person typed, on the command line or in a file of calls or nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from chainkit.contracts.checks import check_account, has_checksum
from chainkit.documents.yaml_text import read_yaml
from chainkit.terminal.facts import echo_fact, shown_to_people

_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")


def typed_account(address: str, subject: str = "owner") -> str:
    """Return an account's address with its checksum, and warn if the address was typed without one.

    Raises as ``check_account``.
    """
    checked = check_account(address, subject)
    _caution(address)
    return checked


def caution_of_addresses_in(path: Path) -> None:
    """Caution of each address without a checksum in a YAML file; raises as ``read_yaml``."""
    for address in dict.fromkeys(_addresses(read_yaml(path, f"file {path}"))):
        _caution(address)


def _caution(address: str) -> None:
    if not has_checksum(address):
        # On standard error, also where standard output is a script's.
        with shown_to_people(as_json=True):
            echo_fact("caution", f"{address} has no checksum: compare each of its digits")


def _addresses(content: Any) -> Iterator[str]:
    if isinstance(content, str) and _ADDRESS.fullmatch(content):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from _addresses(value)
    elif isinstance(content, list):
        for value in content:
            yield from _addresses(value)
