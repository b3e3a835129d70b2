"""JSON from a stranger: it has one form only, and each field is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from chainkit.errors import MalformedData
from chainkit.text.hexadecimal import parse_bytes
from chainkit.text.printable import printable

MOST_INTEGER: Final = 2**63 - 1
_SHOWN: Final = 60
"""Characters of a wrong value that an error repeats."""


def line_bytes(content: Mapping[str, Any]) -> bytes:
    """Serialize an object on one line: the same one always gives the same bytes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def page_bytes(content: Mapping[str, Any]) -> bytes:
    """Serialize an object for people to read: the same one always gives the same bytes."""
    return json.dumps(content, sort_keys=True, indent=2).encode() + b"\n"


def parse_object(data: bytes, subject: str) -> Any:
    """Return the JSON of bytes. Raises MalformedData for anything else, however deep or long."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedData(subject, "JSON", short(str(error))) from error


def parse_line(data: bytes, subject: str) -> Any:
    """Return the JSON of a line, in the form of ``line_bytes``. Raises MalformedData otherwise.

    So no byte of a line can change, or be added, unnoticed.
    """
    content = parse_object(data, subject)
    check_form(data, line_bytes(content) if isinstance(content, dict) else b"", subject)
    return content


def check_form(data: bytes, expected: bytes, subject: str) -> None:
    """Raise MalformedData unless data is the one serialization of its parsed content."""
    if data != expected:
        got = short(data[:_SHOWN].decode(errors="replace"))
        raise MalformedData(subject, "the one form of its JSON", got)


def short(text: str) -> str:
    """Return the beginning of a stranger's text, safe to print."""
    return printable(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")


class Record:
    """Typed access to an object with exactly the fields that are expected."""

    def __init__(self, content: Any, subject: str, names: Collection[str]) -> None:
        """Take an object. Raises MalformedData, as every method does, that names what is wrong."""
        if not isinstance(content, dict) or content.keys() != set(names):
            got = ", ".join(content) if isinstance(content, dict) else type(content).__name__
            raise MalformedData(subject, f"the fields {', '.join(names)}", short(got))
        self._content = content
        self._subject = subject

    def integer(self, name: str, maximum: int = MOST_INTEGER) -> int:
        """Return an integer from 0 to ``maximum``."""
        value = self._content[name]
        # JSON's true is Python's 1, but no number.
        if type(value) is not int or not 0 <= value <= maximum:
            raise self._wrong(name, f"an integer from 0 to {maximum}")
        return value

    def bytes(self, name: str, length: int | None = None) -> bytes:
        """Return the bytes of 0x and hex digits in lower case, ``length`` bytes if given."""
        size = "*" if length is None else f"{{{length}}}"
        expected = "0x and hex digits" if length is None else f"0x and {2 * length} hex digits"
        return parse_bytes(self.text(name, f"0x([0-9a-f]{{2}}){size}", expected))

    def text(self, name: str, pattern: str = "[ -~]*", expected: str = "printable text") -> str:
        """Return text that matches a pattern, which ``expected`` describes."""
        value = self._content[name]
        if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
            raise self._wrong(name, expected)
        return value

    def is_null(self, name: str) -> bool:
        """Return whether a field is null."""
        return self._content[name] is None

    def record(self, name: str, *names: str) -> Record:
        """Return an object within the object, with these fields."""
        return Record(self._content[name], f"{self._subject}, {name}", names)

    def elements(self, name: str) -> list[Record]:
        """Return the elements of a list, each as a record with the one field ``value``."""
        value = self._content[name]
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        subject = f"{self._subject}, {name}"
        return [Record({"value": element}, subject, ["value"]) for element in value]

    def _wrong(self, name: str, expected: str) -> MalformedData:
        value = self._content[name]
        got = short(value) if isinstance(value, str) else short(repr(value)[: 2 * _SHOWN])
        return MalformedData(self._subject, f"{name}: {expected}", got)
