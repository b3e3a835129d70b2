"""`python -m benchmarks.index.child`: measures one job of standard input, in a fresh process.

A row imports what it needs and nothing else, so that the memory it takes is its own.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final

from benchmarks.index.job import Job, Measured

if TYPE_CHECKING:
    from chainkit.errors import ChainkitError
    from chainkit_indexer.types import StepResult

FOLLOW: Final = "follow"
"""How the names of jobs that follow begin."""

RETRYING: Final = "retrying: "
"""How a line about a step that is taken again begins."""


def main() -> None:
    """Do the job, and write what it cost or, following, what each step did."""
    job = Job.from_line(sys.stdin.readline())
    if job.row.startswith(FOLLOW):
        _follow(job)
    else:
        print(_measured(job).to_line(), end="", flush=True)


def _measured(job: Job) -> Measured:
    if job.row == "floor":
        from benchmarks.index.floor import fetch_and_parse

        return fetch_and_parse(job)
    if job.row == "proof_floor":
        from benchmarks.index.floor import fetch_what_proves

        return fetch_what_proves(job)
    if job.row == "tutorial":
        from benchmarks.index.tutorial import index

        return index(job)
    from benchmarks.index.ours import NoProof, catch_up, node_signer
    from chainkit_indexer.follow.provenance import PageProver
    from chainkit_indexer.follow.signing import NoKey

    make_signer = NoKey if job.row == "unsigned" else node_signer
    return catch_up(job, make_signer, PageProver if job.row.startswith("proved") else NoProof)


def _follow(job: Job) -> None:
    from benchmarks.index.ours import follow

    follow(job, _Reporter())


class _Reporter:
    """Writes what each step did and when, on the clock that all processes here share."""

    def succeeded(self, result: StepResult, seconds: float) -> None:
        line = {
            "at": time.monotonic(),
            "kind": type(result).__name__,
            "number": result.cursor.number,
            "hash": result.cursor.hash.hex(),
            "retracted": getattr(result, "retracted", 0),
        }
        print(json.dumps(line), flush=True)

    def failed(self, error: ChainkitError) -> None:
        print(f"{RETRYING}{error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
