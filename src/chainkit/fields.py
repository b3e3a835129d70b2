"""Typed access to a JSON file that a person may have written: errors name the field by its path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from chainkit.errors import ConfigurationError

Value = TypeVar("Value")
Default = TypeVar("Default")
Arguments = ParamSpec("Arguments")


def read_json(path: Path, subject: str) -> Any:
    """Return the JSON of a file. Raises ConfigurationError about ``subject`` if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(subject, "a readable file", error.strerror) from error
    except ValueError as error:
        raise ConfigurationError(subject, "JSON", error) from error


class Fields:
    """Typed access to a JSON object that tells the path of what is missing."""

    def __init__(self, content: Any, subject: str, path: str = "") -> None:
        """Take an object and its path within the record, empty for the whole of it.

        Raises ConfigurationError, as every method does, that names the path of what is wrong.
        """
        if not isinstance(content, Mapping):
            raise ConfigurationError(subject, "an object", type(content).__name__, path)
        self._content = content
        self._subject = subject
        self._path = path

    def _get(self, name: str, expected: str) -> tuple[Any, str]:
        if name not in self._content:
            raise ConfigurationError(self._subject, expected, "nothing", self.path(name))
        return self._content[name], self.path(name)

    def path(self, name: str) -> str:
        """Return where a field stands within the whole record."""
        return f"{self._path}.{name}" if self._path else name

    def names(self) -> list[str]:
        """Return the names of all fields, in the order of the file."""
        return list(self._content)

    def has(self, name: str) -> bool:
        """Tell whether a field is there, be it null."""
        return name in self._content

    def is_null(self, name: str) -> bool:
        """Tell whether a field says null: that there is no such thing."""
        return self.has(name) and self._content[name] is None

    def inner(self, name: str) -> Fields:
        """Return an object."""
        value, path = self._get(name, "an object")
        return Fields(value, self._subject, path)

    def elements(self, name: str) -> list[tuple[Any, str]]:
        """Return the elements of a list, each with its path."""
        value, path = self._get(name, "a list")
        if not isinstance(value, list):
            raise ConfigurationError(self._subject, "a list", type(value).__name__, path)
        return [(element, f"{path}[{number}]") for number, element in enumerate(value)]

    def integer(self, name: str, maximum: int | None = None) -> int:
        """Return an integer from 0, up to ``maximum`` where there is one."""
        value, path = self._get(name, "an integer")
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer or value < 0 or (maximum is not None and value > maximum):
            expected = "an integer from 0" + ("" if maximum is None else f" to {maximum}")
            raise ConfigurationError(self._subject, expected, repr(value), path)
        return int(value)

    def bytes(self, name: str, length: int) -> bytes:
        """Return the ``length`` bytes that a string of hex digits stands for."""
        expected = f"0x and {2 * length} hex digits"
        value, path = self._get(name, expected)
        if not isinstance(value, str) or not re.fullmatch(f"0x[0-9a-fA-F]{{{2 * length}}}", value):
            raise ConfigurationError(self._subject, expected, repr(value), path)
        return bytes.fromhex(value[2:])

    def matching(self, name: str, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Return the match of a whole string with a pattern, which ``expected`` describes."""
        value, path = self._get(name, expected)
        match = pattern.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ConfigurationError(self._subject, expected, repr(value), path)
        return match


class Faults:
    """Notes each field that cannot be used and goes on, so that one error tells them all."""

    def __init__(self, subject: str) -> None:
        """Begin without any; ``subject`` is what the error is about."""
        self.subject = subject
        self._errors: list[ConfigurationError] = []

    def __len__(self) -> int:
        """How many were noted so far."""
        return len(self._errors)

    def read(
        self,
        otherwise: Default,
        read: Callable[Arguments, Value],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Value | Default:
        """Return what ``read`` does, or ``otherwise`` where it raises ConfigurationError."""
        try:
            return read(*arguments, **options)
        except ConfigurationError as error:
            self._errors.append(error)
            return otherwise

    def add(self, expected: object, got: object, path: str) -> None:
        """Note a fault that no reading shows, such as two fields that contradict each other."""
        self._errors.append(ConfigurationError(self.subject, expected, got, path))

    def raise_all(self) -> None:
        """Raise ConfigurationError with all that was noted, or return where nothing was."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            expected = "; ".join(f"{error.place} {error.expected}" for error in self._errors)
            got = "; ".join(f"{error.place} {error.got}" for error in self._errors)
            place = ", ".join(error.place for error in self._errors)
            raise ConfigurationError(self.subject, expected, got, place)
