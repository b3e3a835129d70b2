"""Calls by name in a YAML file, for a proposal of several that no other command drafts.

::

    - NodeRegistry.updateHealth: {tokenId: 300, isHealthy: false}
    - GroupMessages.pause: {}

Each argument is read by its type in the package's ABI; a role may be DEFAULT_ADMIN_ROLE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from chainkit.contracts.checks import check_account
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import shipped_interface
from chainkit.council.calls import FUNCTIONS, Call
from chainkit.council.calls.log_effects import ADMINISTRATOR_ROLE, ADMINISTRATOR_ROLE_NAME
from chainkit.documents.fields import Faults
from chainkit.documents.yaml_text import read_yaml
from chainkit.errors import ConfigurationError
from chainkit.text.hexadecimal import hex0x
from chainkit.text.printable import printable

_NUMBER: Final = re.compile("[0-9]{1,78}")
_HEX: Final = re.compile("0x([0-9a-fA-F]{2})*")
_TRUTH: Final = {"true": True, "false": False}


def read_calls_file(path: Path, record: DeploymentRecord) -> tuple[Call, ...]:
    """Read a file of calls. Raises ConfigurationError that names each entry that cannot be used."""
    subject = f"calls {path}"
    entries = _entries(path, subject)
    faults = Faults(subject)
    read = [
        faults.read(None, _call, record, entry, subject, f"[{number}]")
        for number, entry in enumerate(entries)
    ]
    faults.raise_all()
    return tuple(call for call in read if call is not None)


def _entries(path: Path, subject: str) -> list[Any]:
    content = read_yaml(path, subject)
    if not isinstance(content, list) or not content:
        raise ConfigurationError(subject, "a list of calls", type(content).__name__)
    return content


def _call(record: DeploymentRecord, entry: Any, subject: str, place: str) -> Call:
    if not isinstance(entry, Mapping) or len(entry) != 1:
        expected = "Contract.function and its arguments by name"
        raise ConfigurationError(subject, expected, printable(repr(entry)[:80]), place)
    ((name, given),) = entry.items()
    contract, _, function = str(name).partition(".")
    if function not in FUNCTIONS.get(contract, ()):
        names = [f"{one}.{name}" for one, functions in FUNCTIONS.items() for name in functions]
        raise ConfigurationError(subject, " or ".join(names), printable(str(name)[:80]), place)
    inputs = shipped_interface(contract).inputs(function)
    given = given or {}
    if not isinstance(given, Mapping) or set(given) != set(inputs):
        got = ", ".join(map(str, given)) if isinstance(given, Mapping) else str(given)
        expected = f"the arguments {', '.join(inputs) or '{}'}"
        raise ConfigurationError(subject, expected, printable(got[:80]) or "none", place)
    if given.get("role") == ADMINISTRATOR_ROLE_NAME:
        # Written as on a screen; the argument's name is the contract's own.
        given = {**given, "role": hex0x(ADMINISTRATOR_ROLE)}
    arguments = [
        _value(kind, given[argument], subject, f"{place}.{argument}")
        for argument, kind in inputs.items()
    ]
    return Call.make(record, contract, function, *arguments)


def _value(kind: str, text: Any, subject: str, place: str) -> Any:
    readers: Mapping[str, tuple[Callable[[str], Any], str]] = {
        "address": (lambda value: check_account(value, place), "an address"),
        "bool": (_TRUTH.__getitem__, "true or false"),
        "string": (_text, "text"),
    }
    read, expected = readers.get(kind, (None, ""))
    if kind.startswith("uint"):
        read, expected = _integer(int(kind[4:])), f"a decimal number that a {kind} holds"
    elif kind.startswith("bytes"):
        read, expected = _bytes(kind[5:]), f"0x and the hex digits of {kind}"
    if read is None:
        raise ConfigurationError(subject, "a type that a file can hold", kind, place)
    try:
        return read(text if isinstance(text, str) else "")
    except (KeyError, ValueError):
        got = printable(str(text)[:80])
        raise ConfigurationError(subject, expected, got, place) from None


def _text(text: str) -> str:
    text.encode()  # YAML's escapes can make half a character, which no call holds
    return text


def _integer(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _NUMBER.fullmatch(text) or int(text) >= 2**bits:
            raise ValueError(text)
        return int(text)

    return read


def _bytes(size: str) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        if not _HEX.fullmatch(text) or (size and len(text) != 2 + 2 * int(size)):
            raise ValueError(text)
        return bytes.fromhex(text[2:])

    return read
