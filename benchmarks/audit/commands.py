"""The audit as its user calls it, and the other ways, each measured in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.audit.exports.generate import Exports
from benchmarks.audit.faults.plan import Finding
from benchmarks.watch import Run, run

_CHAINKIT: Final = str(Path(sys.executable).with_name("chainkit"))
_CLEAN, _FINDINGS = 0, 1


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured run of a command, and its output."""

    run: Run
    said: Mapping[str, Any]
    """Its output, read as JSON."""


def reconcile(exports: Exports, out: Path, *options: str) -> Measured:
    """Run `chainkit audit reconcile`; it may find something."""
    nodes = [word for path in exports.nodes.values() for word in ("--node", str(path))]
    command = ["audit", "reconcile", "--chain", str(exports.chain), *nodes, "--out", str(out)]
    return _chainkit(*command, "--without-costs", *options)


def verify_chain(chain: Path, trusted_hash: bytes) -> Measured:
    """Run `chainkit audit verify-chain`, which must find nothing."""
    trust = "0x" + trusted_hash.hex()
    return _chainkit("audit", "verify-chain", "--chain", str(chain), "--trust", trust)


def other(way: str, exports: Exports) -> Measured:
    """Do one of the ways of benchmarks.audit.others."""
    command = [sys.executable, "-m", "benchmarks.audit.others", way, str(exports.directory)]
    return _measured(command, [_CLEAN])


def findings(out: Path) -> Counter[Finding]:
    """Return what an audit found, as far as it does not depend on its words."""
    lines = map(json.loads, (out / "findings.jsonl").read_text().splitlines())
    return Counter(
        Finding(
            line["node_id"],
            line["code"],
            line["originator_id"],
            None if line["sequence_id"] is None else int(line["sequence_id"]),
        )
        for line in lines
    )


def _chainkit(*arguments: str) -> Measured:
    return _measured([_CHAINKIT, *arguments, "--json"], [_CLEAN, _FINDINGS])


def _measured(command: Sequence[str], exit_codes: Sequence[int]) -> Measured:
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    found = run(command, environment, exit_codes)
    return Measured(found, json.loads(found.output))
