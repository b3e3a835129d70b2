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


def at_least(what: str, bound: float, found: float, unit: str, is_enough: bool = True) -> Target:
    """Judge a figure that must not be below a bound; ``is_enough`` says whether it counts."""
    return _judged(what, f"at least {bound}{unit}", found, unit, found >= bound, is_enough)


def at_most(what: str, bound: float, found: float, unit: str, is_enough: bool = True) -> Target:
    """Judge a figure that must not be above a bound."""
    return _judged(what, f"at most {bound}{unit}", found, unit, found <= bound, is_enough)


def below(what: str, bound: float, found: float, unit: str, is_enough: bool = True) -> Target:
    """Judge a figure that must be below a bound."""
    return _judged(what, f"below {bound}{unit}", found, unit, found < bound, is_enough)


def not_measured(what: str, wanted: str) -> Target:
    """Say that a run left something out."""
    return Target(what, wanted, "", "not measured")


def _judged(
    what: str, wanted: str, found: float, unit: str, is_reached: bool, is_enough: bool
) -> Target:
    verdict = ("reached" if is_reached else "missed") if is_enough else "run too short"
    return Target(what, wanted, f"{found:.5g}{unit}", verdict)
