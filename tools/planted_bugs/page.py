"""The page about the simulated network: what it plays, and which planted bugs it finds."""

from __future__ import annotations

from collections.abc import Sequence

from tools.planted_bugs.trial import SEEDS, Verdict

_HEAD = f"""# The simulated network

`tests/support/network/simulation` runs a network of four nodes in one thread, under one seed: the
node's own replication, comparison and own-log check, over logs in memory. Time jumps from one event
to the next. A story of a seed has publishes, crashes, partitions, restored backups, registry
changes and clocks that are up to two minutes off; in the second half of the tests, one node lies.
Then everything is mended, and must hold:

- all honest nodes hold the same bytes, but for ids that their originator signed twice;
- nothing that was acknowledged is lost;
- no honest node is accused of a safety failure;
- each lie that misled an honest node is reported as what it is, by a report that verifies offline.

`tests/network/test_simulated_faults.py` and `test_simulated_lies.py` play 1,000 stories in
`make test`, and 37,000 in `make soak`. A story that fails is played again by its seed.

## Planted bugs

Does the simulator notice when a rule of the node is broken? Each bug below is one change to the
code. The simulator plays up to {SEEDS} stories of each kind that is named, until one fails.
`make planted-bugs` tries all of them again and writes this page.
"""


def page(verdicts: Sequence[Verdict]) -> str:
    """Return the page, in Markdown."""
    found = sum(each.found is not None for each in verdicts)
    rows = [f"**{found} of {len(verdicts)} bugs found.**", ""]
    rows += ["| bug | file | stories | first seed, and what failed |", "|---|---|---|---|"]
    for each in verdicts:
        bug = each.bug
        name = bug.file.rpartition("/")[2]
        stories = ", ".join(bug.lies) or "honest"
        outcome = "not found" if each.found is None else _cell(each.found)
        rows.append(f"| {bug.name} | [{name}](../{bug.file}) | {stories} | {outcome} |")
    return _HEAD + "\n" + "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
