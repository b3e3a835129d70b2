"""A snapshot as JSON, and back: the fields are those of the dataclasses, by their names.

``chainkit node status --url`` reads back what a node's monitor sent, so every field is checked.
"""

from __future__ import annotations

import types
from dataclasses import asdict, fields, is_dataclass
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from chainkit.errors import MalformedAnswer
from chainkit_node.inspection.attention import find_attention
from chainkit_node.inspection.snapshot import FORMAT, NodeStatus
from chainkit_node.inspection.words import shown

_SUBJECT = "status"


def as_json(status: NodeStatus) -> dict[str, Any]:
    """Return a snapshot as scripts and the page read it, with the reasons for attention."""
    reasons = [asdict(each) for each in find_attention(status)]
    return {"format": FORMAT, "attention": reasons, **asdict(status)}


def parse_status(content: Any) -> NodeStatus:
    """Return the snapshot that ``as_json`` wrote; unknown fields are ignored.

    Texts are made printable again: the sender may be anybody. Raises MalformedAnswer that names
    what is wrong.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise MalformedAnswer(_SUBJECT, f"JSON of format {FORMAT}", shown(str(got)))
    status = _parsed(NodeStatus, content, _SUBJECT)
    assert isinstance(status, NodeStatus)
    return status


def _parsed(kind: Any, value: Any, path: str) -> Any:
    """Return a value as the type of a field has it."""
    if get_origin(kind) in (Union, types.UnionType):
        inner = next(each for each in get_args(kind) if each is not type(None))
        return None if value is None else _parsed(inner, value, path)
    if get_origin(kind) is tuple:
        _check(isinstance(value, list), "a list", value, path)
        inner = get_args(kind)[0]
        return tuple(_parsed(inner, each, f"{path}[{n}]") for n, each in enumerate(value))
    if is_dataclass(kind):
        _check(isinstance(value, dict), "an object", value, path)
        hints = get_type_hints(kind)
        parts = {}
        for field in fields(kind):
            _check(field.name in value, f"a field {field.name}", "none", path)
            parts[field.name] = _parsed(
                hints[field.name], value[field.name], f"{path}.{field.name}"
            )
        assert isinstance(kind, type)
        return kind(**parts)
    if issubclass(kind, StrEnum):
        _check(value in list(kind), f"one of {', '.join(kind)}", value, path)
        return kind(value)
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        _check(is_number, "a number", value, path)
        return float(value)
    _check(type(value) is kind, kind.__name__, value, path)
    return shown(value) if kind is str else value


def _check(is_so: bool, expected: str, got: Any, path: str) -> None:
    if not is_so:
        raise MalformedAnswer(path, expected, shown(str(got)))
