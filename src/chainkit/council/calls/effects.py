"""The effect of every function that a council may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from chainkit.council.calls.effect import Effect
from chainkit.council.calls.log_effects import LOG_EFFECTS
from chainkit.council.calls.owner_effects import OWNER_EFFECTS
from chainkit.council.calls.registry_effects import REGISTRY_EFFECTS

EFFECTS: Final[Mapping[str, Effect]] = {**REGISTRY_EFFECTS, **LOG_EFFECTS, **OWNER_EFFECTS}
"""By the function's name, for each of FUNCTIONS and OWNER_FUNCTIONS."""
