"""Options of the commands about proposals: a member's own files, and the proposal read by them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.council.proposal import AddressBook, Council, Proposal, read_council, read_proposal
from chainkit.documents.files import open_regular
from chainkit.errors import ConfigurationError
from chainkit.terminal.options import Option, deployment_option, file_option, gathered, several


def council_option_for(purpose: str, *, required: bool = False) -> Option:
    """Return the option that names a council file; ``purpose`` is its help."""
    return file_option("--council", "council_path", "CHAINKIT_COUNCIL", purpose, required=required)


council_option = council_option_for(
    "Your own council file, as `chainkit council init` writes it.", required=True
)
proposal_argument = click.argument("proposal_path", metavar="FILE", type=click.Path(path_type=Path))
owners_option = click.option(
    "--owners",
    "changes_safe",
    is_flag=True,
    help="FILE changes the Safe's own owners, as `chainkit council owners` drafts it.",
)


@dataclass(frozen=True, slots=True)
class MemberFiles:
    """A member's own files for reading a proposal, and what the member was told that it changes."""

    deployment_path: Path
    council_path: Path
    changes_safe: bool
    """The Safe's own owners; else the contracts."""


reading_options = several(
    deployment_option, council_option, owners_option, gathered(MemberFiles, "files")
)
"""Decorator: what a proposal is read by; the command takes ``files``, MemberFiles."""

no_tracing_option = click.option(
    "--no-tracing",
    is_flag=True,
    help="Go on though the endpoint cannot tell what changes: calls are run, slots are not shown.",
)


def is_proposal(path: Path) -> bool:
    """Return whether bytes are a proposal's file, or pass for one; a report is no text."""
    try:
        with open_regular(path, f"evidence {path}") as file:
            return file.read(1) == b"{"
    except (ConfigurationError, OSError):
        return False


@dataclass(frozen=True, slots=True)
class Reading:
    """A proposal, rebuilt from a member's own files."""

    proposal: Proposal
    record: DeploymentRecord
    council: Council

    @classmethod
    def open(cls, proposal_path: Path, files: MemberFiles) -> Reading:
        """Read all three files. Raises as ``read_proposal`` does."""
        record = read_deployment_record(files.deployment_path)
        council = read_council(files.council_path)
        proposal = read_proposal(proposal_path, record, council, files.changes_safe)
        return cls(proposal, record, council)

    @property
    def address_book(self) -> AddressBook:
        """Names of the addresses in the proposal."""
        return AddressBook(self.record, self.council)
