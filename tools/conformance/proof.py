"""Results of ``prove``, kept in ``proved.json``: the mutation of each demand, and what failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tools.conformance.demands import Mutation

PROVED: Final = Path(__file__).with_name("proved.json")


@dataclass(frozen=True, slots=True)
class Proof:
    """A mutation, and the tests that failed with it."""

    mutation: Mutation
    failed: tuple[str, ...]
    """As ``path::name``, of those that are marked; in order."""


def read_proofs(path: Path = PROVED) -> Mapping[str, Proof]:
    """Return the proofs by the numbers of their demands; none where nothing was proved yet."""
    if not path.exists():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        number: Proof(Mutation(**proof["mutation"]), tuple(proof["failed"]))
        for number, proof in content.items()
    }


def write_proofs(proofs: Mapping[str, Proof], path: Path = PROVED) -> None:
    """Write the proofs, in the order of their numbers."""
    content = {number: asdict(proofs[number]) for number in sorted(proofs)}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
