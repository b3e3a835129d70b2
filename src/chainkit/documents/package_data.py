"""Data that this package ships: ABIs, code, releases. Our own tools wrote the data."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def read_package_json(package: str, name: str) -> Any:
    """Return the JSON of a file beside a package's modules.

    Raises FileNotFoundError where the package ships none of that name.
    """
    return json.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
