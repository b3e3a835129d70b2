"""Typed access to a JSON file that a person may have written: errors name the field by its path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError

Value = TypeVar("Value")
Default = TypeVar("Default")
Arguments = ParamSpec("Arguments")

LARGEST_JSON: Final = 2**26
"""Bytes of a file."""
DEEPEST_JSON: Final = 32
"""Deepest nesting of lists and objects; no file of this package has a third of this depth."""
MOST_FAULTS: Final = 20
"""Most faults in one error: people do not correct more of them at once."""
_SHOWN: Final = 200
"""Characters of a wrong value that an error repeats."""


def read_json(path: Path, subject: str, most: int = LARGEST_JSON) -> Any:
    """Return the JSON of a regular file of ``most`` bytes, which has no field of an object twice.

    Raises ConfigurationError about ``subject`` if there is none.
    """
    return parse_json(read_regular(path, subject, most), subject)


def parse_json(data: bytes, subject: str) -> Any:
    """Return the content of JSON in UTF-8 in which no object has a field twice.

    The caller bounds its length. Raises ConfigurationError about ``subject`` for anything else.
    """
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_object)
    except _FieldTwice as error:
        got = f"{error.name[:_SHOWN]!a} twice"
        raise ConfigurationError(subject, "fields that stand there once", got) from None
    except RecursionError:
        raise _too_deep(subject) from None
    except ValueError as error:
        raise ConfigurationError(subject, "JSON", error) from error
    _check_depth(content, subject)
    return content


class _FieldTwice(Exception):
    """A reader sees one of two equal names, and a program takes the other."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _FieldTwice(name)
        found[name] = value
    return found


def _check_depth(content: Any, subject: str) -> None:
    """Keep values shallow enough for all that is done with them, such as their repr in an error."""
    level = [content] if isinstance(content, dict | list) else []
    for _ in range(DEEPEST_JSON):
        lists = (each.values() if isinstance(each, dict) else each for each in level)
        level = [inner for each in lists for inner in each if isinstance(inner, dict | list)]
        if not level:
            return
    raise _too_deep(subject)


def _too_deep(subject: str) -> ConfigurationError:
    expected = f"JSON of up to {DEEPEST_JSON} lists and objects within each other"
    return ConfigurationError(subject, expected, "more")


class Fields:
    """Typed access to a JSON object that names the path of a missing field."""

    def __init__(self, content: Any, subject: str, path: str = "") -> None:
        """Take an object and its path within the record, empty for the whole record.

        Raises ConfigurationError, as every method does, that names the path of the wrong field.
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
        """Return the path of a field within the whole record."""
        # The name may be the file's own, and a terminal shows the path.
        shown = _cut(ascii(name)[1:-1])
        return f"{self._path}.{shown}" if self._path else shown

    def names(self) -> list[str]:
        """Return the names of all fields, in the order of the file."""
        return list(self._content)

    def has(self, name: str) -> bool:
        """Return whether a field is there, even if null."""
        return name in self._content

    def is_null(self, name: str) -> bool:
        """Return whether a field is null."""
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
            raise ConfigurationError(self._subject, expected, _shown(value), path)
        return int(value)

    def bytes(self, name: str, length: int) -> bytes:
        """Return the ``length`` bytes of a string of hex digits."""
        expected = f"0x and {2 * length} hex digits"
        value, path = self._get(name, expected)
        if not isinstance(value, str) or not re.fullmatch(f"0x[0-9a-fA-F]{{{2 * length}}}", value):
            raise ConfigurationError(self._subject, expected, _shown(value), path)
        return bytes.fromhex(value[2:])

    def matching(self, name: str, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Return the match of a whole string with a pattern, which ``expected`` describes."""
        value, path = self._get(name, expected)
        match = pattern.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ConfigurationError(self._subject, expected, _shown(value), path)
        return match


class Faults:
    """Notes each field that cannot be used and continues, so that one error reports them all."""

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
        """Return the result of ``read``, or ``otherwise`` where it raises ConfigurationError."""
        try:
            return read(*arguments, **options)
        except ConfigurationError as error:
            self._note(error)
            return otherwise

    def known(self, content: Fields, names: Sequence[str]) -> list[str]:
        """Return which of the names an object's fields have; note all other fields."""
        for name in content.names():
            if name not in names:
                self.add(f"one of {', '.join(names)}", "another field", content.path(name))
        return [name for name in names if content.has(name)]

    def add(self, expected: object, got: object, path: str) -> None:
        """Note a fault that no reading shows, such as two fields that contradict each other."""
        self._note(ConfigurationError(self.subject, expected, got, path))

    def _note(self, error: ConfigurationError) -> None:
        got, place = _cut(str(error.got)), _cut(error.place)
        self._errors.append(ConfigurationError(error.subject, error.expected, got, place))

    def raise_all(self) -> None:
        """Raise ConfigurationError with the noted faults, or return where there are none.

        The error has the first MOST_FAULTS, and the number of the others.
        """
        if len(self._errors) == 1:
            raise self._errors[0]
        if not self._errors:
            return
        shown, others = self._errors[:MOST_FAULTS], len(self._errors) - MOST_FAULTS
        expected = "; ".join(f"{error.place} {error.expected}" for error in shown)
        got = "; ".join(f"{error.place} {error.got}" for error in shown)
        place = ", ".join(error.place for error in shown)
        more = f", and {others} more" if others > 0 else ""
        raise ConfigurationError(self.subject, expected, got, place + more)


def _shown(value: Any) -> str:
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
