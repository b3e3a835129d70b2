"""Reads a file of limits in JSON: sections, and the fields of each with their defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from chainkit.documents.fields import Faults, Fields, read_json
from chainkit.errors import ConfigurationError
from chainkit.service.edge.configuration import EdgeTimes

_SMALLEST: Final = {
    **{"request_burst": 1, "publish_burst_bytes": 1, "burst_bytes": 1},
    **{each.name: 1 for each in fields(EdgeTimes)},
    **{"buffer_bytes": 65_536, "header_bytes": 1024, "heap_bytes": 128 << 20},
}
"""For every other field 0 switches the limit off."""

_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")

_Section = TypeVar("_Section")


def read_limits_file(path: Path, defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the sections, each of the type of its defaults, which stand for what is left out.

    Raises ConfigurationError that names the file and each field that is unknown or has no value in
    its range.
    """
    subject = f"limits {path}"
    content, faults = Fields(read_json(path, subject), subject), Faults(subject)
    names = faults.known(content, list(defaults))
    found = {each: faults.read(None, content.inner, each) for each in names}
    sections = {name: _section(each, found.get(name), faults) for name, each in defaults.items()}
    faults.raise_all()
    return sections


def _section(defaults: _Section, content: Fields | None, faults: Faults) -> _Section:
    if content is None:
        return defaults
    given: dict[str, Any] = {}
    kinds: Any = defaults
    for name in faults.known(content, [field.name for field in fields(kinds)]):
        if isinstance(getattr(defaults, name), tuple):
            given[name] = faults.read((), partial(_addresses, content, faults.subject), name)
            continue
        smallest = _SMALLEST.get(name, 0)
        given[name] = faults.read(smallest, content.integer, name)
        if given[name] < smallest:
            faults.add(f"an integer from {smallest}", given[name], content.path(name))
    changed: _Section = replace(kinds, **given)
    return changed


def _addresses(content: Fields, subject: str, name: str) -> tuple[str, ...]:
    addresses = []
    for value, path in content.elements(name):
        if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
            expected = "an address, 0x and 40 hex digits"
            raise ConfigurationError(subject, expected, repr(value)[:60], path)
        addresses.append(value)
    return tuple(addresses)
