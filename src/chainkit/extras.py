"""How to install the packages that a part of chainkit needs."""

from __future__ import annotations


def how_to_install(extra: str = "") -> str:
    """Return the command, and where to run it: no release is published.

    ``extra`` is one of ``[project.optional-dependencies]``; without one, the library alone.
    """
    return f"make mls-engine && pip install {_what(extra)} in a clone of chainkit"


def _what(extra: str) -> str:
    if not extra:
        return "."
    if extra == "contracts":
        # Ape asks for an older numpy than the lock has, which only uv overrules.
        return "'.[contracts]'"
    return f"-c requirements/constraints/{extra}.txt '.[{extra}]'"
