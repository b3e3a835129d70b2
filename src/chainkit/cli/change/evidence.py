"""``--evidence PATH``: a proposal's record of evidence, and whether it fits the calls."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.calls.cautions import disabled_nodes
from chainkit.council.evidence import (
    verify_bundle_with_endpoint,
    verify_report,
    verify_safety,
)
from chainkit.council.proposal import Evidence
from chainkit.council.proposal.grounds import LONGEST_NAME
from chainkit.council.triage.checks import LARGEST_REPORT
from chainkit.documents.untrusted import read_small
from chainkit.errors import ChainkitError, ConfigurationError
from chainkit.evidence.bundle import BUNDLE_NAME, Bundle, parse_bundle
from chainkit.evidence.folder import LARGEST_PAGE
from chainkit.evidence.verdict import Verdict
from chainkit.misbehavior.signed import SignedReport, parse_signed
from chainkit.misbehavior.types import Misbehavior
from chainkit.text.printable import with_shown_blanks


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A bundle or a report, read once."""

    path: Path
    data: bytes
    """A report, or a bundle's own page, which pins every other file of the bundle."""
    content: Bundle | SignedReport

    @property
    def evidence(self) -> Evidence:
        """The name and the digest that a proposal keeps of the evidence."""
        return Evidence(_name(self.path), hashlib.sha256(self.data).hexdigest())


def read_exhibit(path: Path) -> Exhibit:
    """Read a bundle's folder or a report's file.

    Raises ConfigurationError where there is nothing, MalformedData where it is neither of both.
    """
    # Each is read once: what is hashed must be what was parsed, whoever writes to the folder.
    if path.is_dir() and not path.is_symlink():
        if not (path / BUNDLE_NAME).exists():
            got = f"a folder without {BUNDLE_NAME}"
            raise ConfigurationError(f"evidence {path}", "a report, or a bundle's folder", got)
        data = read_small(path / BUNDLE_NAME, LARGEST_PAGE)
        return Exhibit(path, data, parse_bundle(data))
    data = read_small(path, LARGEST_REPORT)
    return Exhibit(path, data, parse_signed(data))


def evidence_cautions(
    exhibits: Sequence[Exhibit],
    calls: Sequence[Call],
    record: DeploymentRecord,
    state: ContractState,
) -> Iterator[str]:
    """Yield what evidence does not bear out of calls, at the state's block; safe to print."""
    disabled = disabled_nodes(calls)
    for exhibit in exhibits:
        name, accused = f'evidence "{exhibit.evidence.name}"', exhibit.content.node_id
        if disabled and accused not in disabled:
            yield f"{name} accuses node {accused}, which no call disables"
        if isinstance(exhibit.content, Bundle) and exhibit.content.chain_id != record.chain_id:
            yield f"{name} is about chain id {exhibit.content.chain_id}, not {record.chain_id}"
        elif doubt := _doubt(exhibit, record, state):
            yield f"{name} is not proved here: {doubt}"


def _doubt(exhibit: Exhibit, record: DeploymentRecord, state: ContractState) -> str:
    """Return why the endpoint does not prove the evidence; nothing where it does."""
    endpoint, block, content = state.endpoint, state.block, exhibit.content
    verdict: Verdict
    try:
        if isinstance(content, Bundle):
            found = verify_bundle_with_endpoint(exhibit.path, content, endpoint, record, block)
            verdict = found.verdict
        elif content.report.misbehavior.is_liveness:
            return f"the chain cannot show {content.report.misbehavior.name}"
        elif content.report.misbehavior is Misbehavior.BLOCKCHAIN_INCONSISTENCY:
            verdict = verify_report(exhibit.data, endpoint, record, block).verdict
        else:
            judged = verify_safety(content, endpoint, record, block, time.time_ns())
            if judged.verdict is not Verdict.PROVED:
                return f"{judged.judgement.weight}: {judged.judgement.reason}"
            verdict = judged.verdict
    except ChainkitError as error:
        return str(error)
    return "" if verdict is Verdict.PROVED else str(verdict)


def _name(path: Path) -> str:
    """Return the proposal's name for evidence: a stranger chose the file's name, and its length."""
    name = with_shown_blanks(ascii(path.absolute().name)[1:-1])
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
