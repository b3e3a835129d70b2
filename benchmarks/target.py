"""Something to reach, and whether a run's figures say that it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to reach, and what was measured of it."""

    what: str
    wanted: str
    found: str
    verdict: str
    """``reached``, ``missed``, ``run too short``, or ``not measured``."""


def at_least(what: str, bound: float, found: float, unit: str, is_enough: bool) -> Target:
    """Judge a figure that must not be below a bound; ``is_enough`` says whether it counts."""
    verdict = _verdict(found >= bound, is_enough)
    return Target(what, f"at least {bound}{unit}", f"{found:.5g}{unit}", verdict)


def at_most(what: str, bound: float, found: float, unit: str, is_enough: bool = True) -> Target:
    """Judge a figure that must not be above a bound."""
    verdict = _verdict(found <= bound, is_enough)
    return Target(what, f"at most {bound}{unit}", f"{found:.5g}{unit}", verdict)


def below(what: str, bound: float, found: float, unit: str, is_enough: bool = True) -> Target:
    """Judge a figure that must be below a bound."""
    verdict = _verdict(found < bound, is_enough)
    return Target(what, f"below {bound}{unit}", f"{found:.5g}{unit}", verdict)


def not_measured(what: str, wanted: str) -> Target:
    """Say that a run left something out."""
    return Target(what, wanted, "", "not measured")


def _verdict(is_reached: bool, is_enough: bool) -> str:
    if not is_enough:
        return "run too short"
    return "reached" if is_reached else "missed"
