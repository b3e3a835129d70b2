"""The facts that the demo must show: computed from its run, and compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from chainkit.text.counting import counted


@dataclass
class Summary:
    """The facts of one run; ``faults`` lists the deviations."""

    facts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def expect(self, what: str, expected: object, got: object) -> None:
        """Record a fault where a fact is not as expected."""
        if expected != got:
            self.faults.append(f"{what}: expected {expected}, got {got}")

    def write(self, path: Path) -> None:
        """Write the facts for scripts."""
        content = self.facts | {
            "ok": not self.faults,
            "faults": self.faults,
            "seconds": {stage: round(seconds, 2) for stage, seconds in self.seconds.items()},
        }
        path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    def show(self) -> None:
        """Print the facts for a person."""
        facts, reorg = self.facts, self.facts["reorg"]
        device = facts["second_device"]
        lines = {
            "published": f"{facts['messages_published']} messages in one order",
            "clients": f"{facts['real_client_messages']} texts between two real clients, before "
            "and after the reorg",
            "devices": f"{counted(device['texts'], 'text')} on a second device, from before it "
            f"joined, {counted(device['proven'], 'message')} proven",
            "quarantined": f"{facts['quarantined']} malformed payloads, kept and never served",
            "reorg": f"{reorg['depth']} blocks deep: {reorg['kept']} kept, {reorg['moved']} moved "
            f"to another sequence id, {reorg['dropped']} dropped",
            "honest nodes": "byte-identical"
            if facts["honest_nodes_identical"]
            else "NOT identical",
            "injected": _counts(facts["expected_findings"]),
            "found": _counts(facts["findings"]),
            "lies told": _counts(facts["live_lies_told"]),
            "lies proved": f"{_counts(facts['live_lies_reported'])}, by the other nodes",
            "lies found": f"{_counts(facts['live_lies_proved_by_client'])}, by a client",
            "report": "proved against the chain" if facts["report_verified"] else "NOT proved",
            "council": f"{facts['proposals']} proposals of a Safe, two of three owners each",
            "node": "disabled, and the others see it" if facts["node_disabled"] else "NOT disabled",
            "look at": facts["html_report"],
        }
        for name, text in lines.items():
            click.echo(f"  {name:<13} {text}")
        for fault in self.faults:
            click.secho(f"  fault         {fault}", fg="red")


def count_codes(codes: Iterable[str]) -> dict[str, int]:
    """Return how often each code occurs."""
    return dict(sorted(Counter(codes).items()))


def _counts(codes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {code}" for code, count in codes.items()) or "nothing"
