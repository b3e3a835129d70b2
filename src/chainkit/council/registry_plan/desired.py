"""The set of nodes that a council wants, as a YAML file that people write.

The file may come from a stranger: all faults are reported at once, each by its path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from chainkit.contracts.checks import check_account, check_http_address, check_public_key
from chainkit.documents.fields import Faults
from chainkit.documents.yaml_text import read_yaml
from chainkit.errors import ConfigurationError
from chainkit.signatures import address_of
from chainkit.text.printable import printable

Value = TypeVar("Value")

_FIELDS: Final = ("key", "holder", "http_address", "status")
_STATUS: Final = {"enabled": True, "disabled": False}
_HEX_KEY: Final = re.compile("0x[0-9a-fA-F]{130}")


@dataclass(frozen=True, slots=True)
class DesiredNode:
    """A node as the council wants it."""

    key: bytes
    """65 bytes: the signing key, which never changes and so names the node."""
    holder: str
    """Checksummed address."""
    http_address: str
    is_enabled: bool
    path: str
    """The node's place in the file, for errors."""

    @property
    def key_address(self) -> str:
        """Checksummed address of the key."""
        return address_of(self.key)


def read_desired_nodes(path: Path) -> tuple[DesiredNode, ...]:
    """Read a file of desired nodes, in its own order.

    Raises ConfigurationError that names the path of every field that is missing, unknown, written
    twice or cannot be used, and where two nodes have one key.
    """
    subject = desired_subject(path)
    content = read_yaml(path, subject)
    faults = Faults(subject)
    nodes = _nodes(content, faults)
    _note_shared_keys(nodes, faults)
    faults.raise_all()
    return tuple(nodes)


def desired_subject(path: Path) -> str:
    """Return what errors call the file."""
    return f"desired nodes {path}"


def _nodes(content: Any, faults: Faults) -> list[DesiredNode]:
    if not isinstance(content, Mapping):
        faults.add("a mapping with `nodes`", _kind(content), "the whole")
        return []
    for name in content:
        if name != "nodes":
            faults.add("no other field than nodes", "an unknown field", printable(name))
    elements = content.get("nodes")
    if not isinstance(elements, list):
        faults.add("a list", _kind(elements), "nodes")
        return []
    found = (_node(each, f"nodes[{number}]", faults) for number, each in enumerate(elements))
    return [node for node in found if node is not None]


def _node(element: Any, path: str, faults: Faults) -> DesiredNode | None:
    if not isinstance(element, Mapping):
        faults.add(f"a mapping with {', '.join(_FIELDS)}", _kind(element), path)
        return None
    before = len(faults)
    for name in element:
        if name not in _FIELDS:
            expected = f"one of {', '.join(_FIELDS)}"
            faults.add(expected, "an unknown field", f"{path}.{printable(name)}")
    key = _field(element, "key", path, faults, _public_key)
    holder = _field(element, "holder", path, faults, check_account)
    url = _field(element, "http_address", path, faults, _http_address)
    status = _field(element, "status", path, faults, _status)
    if len(faults) > before or key is None or holder is None or url is None or status is None:
        return None
    return DesiredNode(key, holder, url, status, path)


def _field(
    element: Mapping[str, Any],
    name: str,
    path: str,
    faults: Faults,
    read: Callable[[str], Value],
) -> Value | None:
    """Return the value of a field's text; None, and the fault noted, where there is none."""
    text = element.get(name)
    if not isinstance(text, str):
        faults.add("a value", _kind(text), f"{path}.{name}")
        return None
    try:
        return read(text)
    except ConfigurationError as error:
        faults.add(error.expected, error.got, f"{path}.{name}")
        return None


def _public_key(text: str) -> bytes:
    if not _HEX_KEY.fullmatch(text):
        raise ConfigurationError("key", "0x and 130 hex digits", f'"{printable(text)}"')
    key = bytes.fromhex(text[2:])
    check_public_key(key)
    return key


def _http_address(text: str) -> str:
    check_http_address(text)
    return text


def _status(text: str) -> bool:
    if text not in _STATUS:
        raise ConfigurationError("status", " or ".join(_STATUS), f'"{printable(text)}"')
    return _STATUS[text]


def _note_shared_keys(nodes: list[DesiredNode], faults: Faults) -> None:
    first: dict[bytes, str] = {}
    for node in nodes:
        earlier = first.setdefault(node.key, node.path)
        if earlier != node.path:
            faults.add("a key of its own", f"the key of {earlier}", f"{node.path}.key")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f'"{printable(value)}"' if value else "nothing"
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list) else "a mapping"
