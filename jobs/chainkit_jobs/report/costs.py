"""The report's part about the chain's costs: its figures, and its text."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from chainkit.text.printable import printable
from chainkit_jobs.cost import figures
from chainkit_jobs.cost.digest import CostDigest
from chainkit_jobs.report.drawing import drawn

NOT_ASKED_FOR: Final = (
    "Not part of this audit: it was told to leave it out. `chainkit audit cost` tells it."
)

VARIANT_WORDS: Final = {
    "complete": "the whole message as calldata, no event",
    "complete-event": "the whole message as calldata, and in an event",
    "hash": "the message's hash as calldata, no event",
    "hash-event": "the message's hash as calldata, and in an event",
    "ours": "as the contracts do it: the whole message, an event, one sequence",
    "stored-code": "the whole message kept as the code of contracts",
    "stored-hash": "the message's hash kept in a slot of storage",
    "stored-message": "the whole message kept in slots of storage",
}
"""The meaning of each of variants.VARIANTS."""


def cost_problem(costs: CostDigest | str | None) -> str:
    """Return why the page shows no costs, or nothing where it does."""
    if costs is None:
        return NOT_ASKED_FOR
    return (
        f"Not told, because the export does not hold it all: {costs}"
        if isinstance(costs, str)
        else ""
    )


def cost_pictures(costs: CostDigest) -> dict[str, Markup]:
    """Draw the figures of what the chain cost, those of messages only where there are any."""
    rows, time = costs.times, costs.time
    pictures = {
        "gas": drawn(
            "cost-gas",
            f"Bars of gas per {time}, {len(rows)} of them; what failed is marked.",
            lambda: figures.gas_over_time(rows, time),
        ),
        "price": drawn(
            "cost-price",
            f"Levels of the price of gas per {time}, in gwei.",
            lambda: figures.price_over_time(rows, time),
        ),
        "limit": drawn(
            "cost-limit",
            f"Levels of the part of the gas limit per {time}, in percent.",
            lambda: figures.limit_over_time(rows, time),
        ),
    }
    if costs.samples:
        # A font has not every letter of a name that a stranger chose.
        samples = [row | {"contract": printable(row["contract"])} for row in costs.samples]
        pictures["size"] = drawn(
            "cost-size",
            f"Points of gas over payload size, one for each of {len(samples)} messages.",
            lambda: figures.size_against_gas(samples),
        )
    if costs.variants:
        pictures["variants"] = drawn(
            "cost-variants",
            "Bars of each variant's gas as a multiple of what was paid.",
            lambda: figures.variants_beside_paid(costs.variants),
        )
    return pictures
