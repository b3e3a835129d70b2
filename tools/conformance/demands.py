"""Reads ``demands.yaml``: what the specifications demand, by number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from chainkit.errors import ConfigurationError
from tools.breaking import Break

DEMANDS: Final = Path(__file__).with_name("demands.yaml")
_FIELDS: Final = {"summary", "code", "mutation"}
_MUTATION_FIELDS: Final = {"file", "text", "replacement"}


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing that a specification demands."""

    number: str
    summary: str
    code: tuple[str, ...] = ()
    """Paths of the files that meet the demand; empty where it is not built yet."""
    mutation: Break | None = None
    """Breaks the rule, so that a test must fail; None where the demand is not built yet."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """The demands of one part of the public text."""

    title: str
    section: str
    """Name and section of the public text."""
    demands: tuple[Demand, ...]


def read_demands(path: Path = DEMANDS) -> tuple[Chapter, ...]:
    """Return the chapters in the file's order. Raises ConfigurationError for another form."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(
        Chapter(
            chapter["title"],
            chapter["section"],
            tuple(_demand(number, value) for number, value in chapter["demands"].items()),
        )
        for chapter in content["chapters"]
    )


def _demand(number: Any, value: Any) -> Demand:
    if not isinstance(number, str):
        raise ConfigurationError(DEMANDS.name, "a number in quotes or with a letter", number)
    if isinstance(value, str):
        return Demand(number, value)
    _check_fields(number, value, _FIELDS)
    mutation = value["mutation"]
    _check_fields(f"{number}, mutation", mutation, _MUTATION_FIELDS)
    return Demand(number, value["summary"], tuple(value["code"]), Break(**mutation))


def _check_fields(subject: str, value: Any, fields: set[str]) -> None:
    if not isinstance(value, dict) or value.keys() != fields:
        raise ConfigurationError(f"{DEMANDS.name}, {subject}", ", ".join(sorted(fields)), value)
