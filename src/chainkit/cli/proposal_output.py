"""What the council's commands print of a proposal, for people and for scripts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from chainkit.cli.facts import echo_fact
from chainkit.cli.options import hex0x, reference_as_json
from chainkit.interface import printable, render
from chainkit.proposal import AddressBook, Proposal, hashes, proposal_content

if TYPE_CHECKING:
    from chainkit.proposal.standing import Standing

_HASH_LABELS: Final = {
    "grounds": "grounds",
    "domain": "domain hash",
    "message": "message hash",
    "safe_tx": "SafeTx hash",
    "transaction": "transaction",
}


def moment(seconds: int) -> str:
    """Write seconds since 1970 as a date and a time in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s after 1970"


def echo_proposal(proposal: Proposal, book: AddressBook) -> None:
    """Print everything that a signature of the proposal would be given for, rebuilt."""
    content, grounds = proposal_content(proposal), proposal.grounds
    echo_fact("account", book.described(content["account"]))
    echo_fact("chain id", f"{content['chain_id']}, nonce {proposal.nonce}")
    if proposal.changes_safe:
        echo_fact("", "THIS CHANGES THE SAFE ITSELF: who owns it, or how many must sign")
    echo_fact("reason", printable(grounds.reason))
    echo_fact("expires", moment(grounds.expires))
    for evidence in grounds.evidence:
        echo_fact("evidence", f"sha256 {evidence.sha256} {printable(evidence.name)}")
    for number, call in enumerate(proposal.calls, start=1):
        label = "call" if len(proposal.calls) == 1 else f"call {number} of {len(proposal.calls)}"
        echo_fact(label, f"{call.contract}.{call.function}")
        for name, value in call.arguments.items():
            echo_fact(f"  {name}", _argument(value, book))
    for line in grounds.difference:
        echo_fact("changes", line)
    echo_fact("", "left of -> is what its drafter read; 'council status' asks the chain")
    if proposal.fees:
        most = proposal.fees.gas * proposal.fees.max_fee_per_gas
        echo_fact("costs", f"at most {most} wei ({proposal.fees.gas} gas)")
    echo_hashes(proposal)


def echo_hashes(proposal: Proposal) -> None:
    """Print the hashes that owners compare with each other and with their devices."""
    for name, value in hashes(proposal).items():
        echo_fact(_HASH_LABELS[name], hex0x(value))


def echo_signers(signers: Collection[str], book: AddressBook) -> None:
    """Print who has signed, by what the signatures alone show; only the chain knows the owners."""
    for signer in signers:
        echo_fact("signed by", book.described(signer))
    if not signers:
        echo_fact("signed by", "nobody yet")


def echo_standing(standing: Standing, book: AddressBook) -> None:
    """Print what the chain says of a proposal: who has signed, and what is still in the way."""
    echo_fact("read at", f"block {standing.block}")
    echo_fact("signatures", f"{len(standing.signed)} of {standing.threshold} needed")
    for owner in standing.owners:
        word = "signed" if owner in standing.signed else "-"
        echo_fact(f"  {word}", book.described(owner))
    for caution in standing.cautions:
        echo_fact("caution", caution)
    for obstacle in standing.obstacles:
        echo_fact("in the way", obstacle)


def echo_slots(slots: Iterable[str]) -> None:
    """Print what the simulation found to change, slot by slot."""
    for line in slots:
        echo_fact("storage", line)


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as scripts read it: its file's content."""
    return proposal_content(proposal) | {"signers": list(proposal.signatures)}


def standing_json(standing: Standing) -> dict[str, Any]:
    """Return what the chain says of a proposal as scripts read it."""
    return {
        "block": reference_as_json(standing.block),
        "owners": list(standing.owners),
        "threshold": standing.threshold,
        "signed": list(standing.signed),
        "cautions": list(standing.cautions),
        "obstacles": list(standing.obstacles),
        "executable": standing.is_executable,
    }


def _argument(value: Any, book: AddressBook) -> str:
    """Write an argument whole: what an owner does not see, he does not sign for."""
    text = render(value)
    return book.described(value) if isinstance(value, str) and value == text else text
