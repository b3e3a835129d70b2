"""Facts from a file, read in the one form in which a chain would return them.

Without a network a fact before a call is its drafter's word, and the fact after may repeat it: so
only addresses, numbers, and words from a fixed list are taken from a fact.
"""

from __future__ import annotations

import re
from typing import Final

from eth_utils.address import is_checksum_address

from chainkit.council.calls.effect import NONE, Facts
from chainkit.documents.canonical import short
from chainkit.errors import MalformedData

SEPARATOR: Final = ", "
"""Between addresses of a fact that has several."""

_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")


def choice(facts: Facts, name: str, *words: str) -> str:
    """Return a fact that is one of some words. Raises MalformedData, as all of these do."""
    if facts[name] not in words:
        raise _wrong(facts, name, " or ".join(words))
    return facts[name]


def address(facts: Facts, name: str) -> str:
    """Return a fact that is one checksummed address."""
    if not is_checksum_address(facts[name]):
        raise _wrong(facts, name, "a checksummed address")
    return facts[name]


def address_or_none(facts: Facts, name: str) -> str:
    """Return a fact that is an address, or None where the fact is that there is none."""
    return NONE if facts[name] == NONE else address(facts, name)


def addresses(facts: Facts, name: str) -> list[str]:
    """Return a fact that lists addresses, in order and each once."""
    found = facts[name].split(SEPARATOR)
    if not all(map(is_checksum_address, found)) or found != sorted(set(found)):
        raise _wrong(facts, name, "checksummed addresses in order")
    return found


def number(facts: Facts, name: str) -> int:
    """Return a fact that is a number from 1."""
    if not _NUMBER.fullmatch(facts[name]):
        raise _wrong(facts, name, "a number")
    return int(facts[name])


def matching(facts: Facts, name: str, pattern: str, expected: str) -> str:
    """Return a fact that matches a pattern, which ``expected`` describes."""
    if not re.fullmatch(pattern, facts[name]):
        raise _wrong(facts, name, expected)
    return facts[name]


def _wrong(facts: Facts, name: str, expected: str) -> MalformedData:
    return MalformedData(f"facts before, {name}", expected, short(facts[name]))
