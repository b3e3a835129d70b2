"""The outcome of each mutant, kept in `build/mutation.json` between a run and its report."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from chainkit.errors import ConfigurationError
from tools.mutation.mutants import Mutant
from tools.mutation.trial import INVALID, KILLED, SURVIVED, Verdict


@dataclass(frozen=True)
class Result:
    """One mutant's row."""

    name: str
    file: str
    line: int
    operator: str
    outcome: str
    noticed_by: str

    @classmethod
    def of(cls, mutant: Mutant, verdict: Verdict) -> "Result":
        """Join a mutant and what became of it."""
        return cls(
            mutant.name,
            mutant.file,
            mutant.line,
            mutant.operator,
            verdict.outcome,
            verdict.noticed_by,
        )


@dataclass(frozen=True)
class Tally:
    """How many mutants were killed, survived, and did not compile."""

    killed: int
    survived: int
    invalid: int

    @classmethod
    def of(cls, results: Iterable[Result]) -> "Tally":
        """Count rows."""
        outcomes = [result.outcome for result in results]
        return cls(*(outcomes.count(outcome) for outcome in (KILLED, SURVIVED, INVALID)))

    @property
    def score(self) -> str:
        """The share of killed mutants among those that compile, in percent."""
        counted = self.killed + self.survived
        return f"{100 * self.killed / counted:.1f} %" if counted else "none"


def write(path: Path, results: list[Result], seed: int) -> None:
    """Write all rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [asdict(result) for result in results]
    content = {"seed": seed, "score": Tally.of(results).score, "mutants": rows}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> list[Result]:
    """Read the rows of the last run."""
    if not path.exists():
        raise ConfigurationError("results", "a file that a run wrote", "none", str(path))
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Result(**row) for row in content["mutants"]]
