"""A council member's own file: the council's account, and the names of addresses.

The file is made once from the chain, read by its owner, and kept. A proposal's statements about
accounts are compared with the file, never the other way round.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.calls import FUNCTIONS, SAFE
from chainkit.council.safe import known_contracts, known_versions
from chainkit.council.safe.releases import MULTI_SEND
from chainkit.documents.fields import Faults, Fields, read_json
from chainkit.documents.files import write_new
from chainkit.types import ADDRESS_LENGTH

COUNCIL_FORMAT: Final = 1

_SHOWN_DIGITS: Final = 4
"""Hex digits at both ends by which people recognize an address; look-alikes share these digits."""
_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
_SAFE_ACCOUNT: Final = "the council's Safe"
_PLAIN_ACCOUNT: Final = "the council's account"
_UNKNOWN: Final = "not in your council file"
_EXPECTED_NAME: Final = "1 to 40 letters, digits, spaces, dots, dashes, underscores (ASCII)"


@dataclass(frozen=True, slots=True)
class SafeSettings:
    """The settings of the council's Safe that are known without asking the chain."""

    release: str
    """Version of the Safe's contracts, such as 1.4.1: one of the known versions, if the file names
    one."""
    multi_send: bytes
    """20 bytes: the release's MultiSendCallOnly, through which the Safe makes several calls at
    once."""


@dataclass(frozen=True, slots=True)
class Council:
    """The council's account on one chain, and names for the addresses that its members meet."""

    chain_id: int
    account: bytes
    """20 bytes: what owns the registry, or administers the logs."""
    safe: SafeSettings | None
    """None for a plain account, which has a key."""
    names: Mapping[str, str]
    """By checksummed address, unlike each other."""

    @property
    def address(self) -> str:
        """Checksummed address of the account."""
        return to_checksum_address(self.account)


def council_content(council: Council) -> dict[str, Any]:
    """Return a council as its file's JSON holds it."""
    safe = council.safe
    return {
        "format": COUNCIL_FORMAT,
        "chain_id": council.chain_id,
        "account": council.address,
        "safe": safe
        and {"release": safe.release, "multi_send": to_checksum_address(safe.multi_send)},
        "names": {name: address for address, name in council.names.items()},
    }


def write_council(path: Path, council: Council) -> None:
    """Write a council's file. Raises ConfigurationError where it exists, or cannot be written."""
    text = json.dumps(council_content(council), indent=2) + "\n"
    write_new(path, text.encode(), _subject(path))


def read_council(path: Path) -> Council:
    """Read a council's file. Raises ConfigurationError that names each field at fault."""
    subject = _subject(path)
    fields, faults = Fields(read_json(path, subject), subject), Faults(subject)
    if (version := faults.read(COUNCIL_FORMAT, fields.integer, "format")) != COUNCIL_FORMAT:
        faults.add(COUNCIL_FORMAT, version, "format")
    council = Council(
        chain_id=faults.read(0, fields.integer, "chain_id"),
        account=faults.read(b"", fields.bytes, "account", ADDRESS_LENGTH),
        safe=None if fields.is_null("safe") else _safe(fields, faults),
        names=_names(fields, faults),
    )
    faults.raise_all()
    return council


class AddressBook:
    """Names of addresses: the deployment's contracts, the council's account, the file's names."""

    def __init__(self, record: DeploymentRecord, council: Council) -> None:
        """Take names of both; the council file cannot name the contracts or the account."""
        self._names = dict(council.names)
        self._names[council.address] = _SAFE_ACCOUNT if council.safe else _PLAIN_ACCOUNT
        if council.safe:
            self._names[to_checksum_address(council.safe.multi_send)] = MULTI_SEND
        for contract in record.contracts:
            self._names[to_checksum_address(contract.address)] = contract.name

    def name(self, address: str) -> str | None:
        """Return the name of a checksummed address, None if the address book has none."""
        return self._names.get(address)

    def described(self, address: str) -> str:
        """Return an address with its name, or with a warning where it looks like a known one."""
        name = self.name(address)
        if name is not None:
            return f"{address} ({name})"
        for known in self.look_alikes(address):
            return f"{address} (NOT IN YOUR FILE, and looks like {known}: {self._names[known]})"
        return f"{address} ({_UNKNOWN})"

    def look_alikes(self, address: str) -> Iterator[str]:
        """Yield known addresses that begin and end with the same digits as an unknown address."""
        for known in self._names:
            if known != address and _ends(known) == _ends(address):
                yield known


def _ends(address: str) -> tuple[str, str]:
    digits = address[2:].lower()
    return digits[:_SHOWN_DIGITS], digits[-_SHOWN_DIGITS:]


def _safe(fields: Fields, faults: Faults) -> SafeSettings | None:
    inner = faults.read(None, fields.inner, "safe")
    if inner is None:
        return None
    pattern = re.compile("|".join(map(re.escape, known_versions())))
    expected = f"a known release: {' or '.join(known_versions())}"
    release = faults.read(None, inner.matching, "release", pattern, expected)
    multi_send = faults.read(b"", inner.bytes, "multi_send", ADDRESS_LENGTH)
    if release is None or not multi_send:
        return None
    # Several calls make the Safe run this contract's code: another address would be a stranger's.
    known = known_contracts()[MULTI_SEND, release[0]]
    if multi_send != known.address:
        got = to_checksum_address(multi_send)
        faults.add(f"that of {known}", got, inner.path("multi_send"))
    return SafeSettings(release[0], multi_send)


def _names(fields: Fields, faults: Faults) -> dict[str, str]:
    inner = faults.read(None, fields.inner, "names")
    names: dict[str, str] = {}
    for name in inner.names() if inner else []:
        assert inner is not None
        address = to_checksum_address(faults.read(bytes(20), inner.bytes, name, ADDRESS_LENGTH))
        if not _NAME.fullmatch(name):
            # Letters of other scripts could make one name pass for another.
            faults.add(_EXPECTED_NAME, ascii(name), inner.path(name))
        elif _folded(name) in _taken_names():
            faults.add("a name that the contracts do not have", name, inner.path(name))
        elif address in names:
            faults.add(f"one name for {address}", f"{names[address]} and {name}", "names")
        elif name.casefold() in {other.casefold() for other in names.values()}:
            faults.add("names that differ in more than their case", name, "names")
        else:
            names[address] = name
    return names


def _folded(name: str) -> str:
    """Return the parts of a name that a quick reader sees."""
    return re.sub("[^a-z0-9]", "", name.lower())


@cache
def _taken_names() -> frozenset[str]:
    """Return the names in an address book except those of a file's owners, case-folded."""
    of_safe = (name for name, _ in known_contracts())
    own = (SAFE, _SAFE_ACCOUNT, _PLAIN_ACCOUNT, _UNKNOWN)
    return frozenset(map(_folded, (*FUNCTIONS, "OriginatorSequence", *of_safe, *own)))


def _subject(path: Path) -> str:
    return f"council file {path}"
