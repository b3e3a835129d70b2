"""Writes the deployment record: whole or not at all, and never over another one."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainkit.deployment import parse_deployment_record
from chainkit.errors import ConfigurationError


def check_absent_or_readable(path: Path) -> None:
    """Raise ConfigurationError where no record could be written, before anything is sent."""
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigurationError(f"record {path}", "a writable folder", f"{folder}")
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"record {path}", "a file or nothing", "something else")


def read_record(path: Path) -> dict[str, Any]:
    """Return a record as it stands. Raises ConfigurationError if it is none."""
    subject = f"deployment record {path}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(subject, "JSON", error) from error
    parse_deployment_record(content, subject)
    return dict(content)


def write_record(path: Path, content: Mapping[str, Any]) -> None:
    """Write a record in one step: readers see all of it or nothing."""
    parse_deployment_record(content, f"deployment record {path}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, path)
