"""How to install the packages that a part of chainkit needs."""

from __future__ import annotations


def how_to_install(extra: str = "") -> str:
    """Return the command, and where to run it: no release is published.

    ``extra`` is one of ``[project.optional-dependencies]``; without one, the library alone.
    """
    what = f"'.[{extra}]'" if extra else "."
    return f"make mls-engine && pip install {what} in a clone of chainkit"
