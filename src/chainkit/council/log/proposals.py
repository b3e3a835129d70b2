"""Proposal files: the reasons and the evidence, of which the chain has only the digest.

A file proves itself: its grounds hash to the digest that was signed, or its transaction to the hash
that the Safe executed. So the keeper of the files does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.calls import expected_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.log.calls import Calls
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.file import read_proposal
from chainkit.council.proposal.grounds import Grounds
from chainkit.council.proposal.proposal import Proposal
from chainkit.errors import ChainkitError, ConfigurationError, MalformedData
from chainkit.text.printable import printable


@dataclass(frozen=True, slots=True)
class KeptProposals:
    """Proposals from their files, by what names each on the chain."""

    by_hash: Mapping[bytes, Proposal] = field(default_factory=dict)
    """By the SafeTx hash, or the hash that a plain account's owner signed."""
    grounds: Mapping[bytes, Grounds] = field(default_factory=dict)
    """By digest."""
    unread: tuple[str, ...] = ()
    """Files that are none, a line each, safe to print."""

    def grounds_of(self, record: DeploymentRecord, found: Calls) -> tuple[Grounds | None, str]:
        """Return the grounds of an account's calls, and what is wrong with the grounds, or empty.

        None where no file contains the grounds that the trailer names. The signer chooses the
        trailer, and may take the one of an honest proposal: the grounds are returned only where
        they are about these calls.
        """
        if found.trailer is None or found.trailer.digest not in self.grounds:
            return None, ""
        grounds = self.grounds[found.trailer.digest]
        if found.trailer.expires == grounds.expires and _speak_of(grounds, record, found):
            return grounds, ""
        return None, "it bears the grounds of another proposal: they say nothing of these calls"


def _speak_of(grounds: Grounds, record: DeploymentRecord, found: Calls) -> bool:
    calls = [each.call for each in found.calls if each.call is not None]
    if len(calls) < len(found.calls):
        return False
    try:
        change = expected_change(EFFECTS, record, calls, grounds.before)
    except (ConfigurationError, MalformedData):
        return False
    return dict(change.after) == dict(grounds.after)


def read_kept(folder: Path, record: DeploymentRecord, council: Council) -> KeptProposals:
    """Read all proposals of a folder, ``*.json``; a file that is no proposal is passed over.

    Raises ConfigurationError where there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigurationError("--proposals", "a folder", printable(str(folder)))
    by_hash: dict[bytes, Proposal] = {}
    unread: list[str] = []
    for path in sorted(folder.glob("*.json")):
        try:
            proposal = _read(path, record, council)
        except ChainkitError as error:
            unread.append(printable(str(error)))
        else:
            by_hash[proposal.hash] = proposal
    grounds = {each.grounds.digest: each.grounds for each in by_hash.values()}
    return KeptProposals(by_hash, grounds, tuple(unread))


def _read(path: Path, record: DeploymentRecord, council: Council) -> Proposal:
    """Read a proposal that changes the contracts, or else one that changes the Safe's owners."""
    try:
        return read_proposal(path, record, council)
    except ChainkitError as error:
        try:
            return read_proposal(path, record, council, changes_safe=True)
        except ChainkitError:
            raise error from None
