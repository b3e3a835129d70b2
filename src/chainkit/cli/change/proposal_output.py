"""A proposal as the council's commands print it, for people and for scripts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.artifacts import releases
from chainkit.contracts.interface import render
from chainkit.council.calls.effect import NONE
from chainkit.council.calls.log_effects import ADMINISTRATOR_ROLE, ADMINISTRATOR_ROLE_NAME
from chainkit.council.calls.registry_effects import HTTP_ADDRESS
from chainkit.council.proposal import AddressBook, Grounds, Proposal, hashes, proposal_content
from chainkit.council.safe import SafeTransaction
from chainkit.terminal.facts import echo_fact, echo_quoted
from chainkit.text.ether import ether_words
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json

if TYPE_CHECKING:
    from chainkit.council.proposal.status import ProposalStatus

_UPGRADE: Final = "upgradeToAndCall"
_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")
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


def echo_cautions(cautions: Iterable[str]) -> None:
    """Print the warnings for a reader, above everything else."""
    for caution in cautions:
        echo_fact("caution", caution)


def echo_proposal(proposal: Proposal, address_book: AddressBook) -> None:
    """Print everything that a signature of the proposal would be given for, rebuilt."""
    content, grounds = proposal_content(proposal), proposal.grounds
    echo_fact("account", address_book.described(content["account"]))
    echo_fact("chain id", f"{content['chain_id']}, nonce {proposal.nonce}")
    if proposal.changes_safe:
        echo_fact("", "THIS CHANGES THE SAFE ITSELF: who owns it, or how many must sign")
    for number, call in enumerate(proposal.calls, start=1):
        label = "call" if len(proposal.calls) == 1 else f"call {number} of {len(proposal.calls)}"
        echo_fact(label, f"{call.contract}.{call.function} at {call.target_address}")
        for name, value in call.arguments.items():
            _echo_argument(name, value, address_book)
    if isinstance(proposal.transaction, SafeTransaction) and len(proposal.calls) > 1:
        through = to_checksum_address(proposal.transaction.to)
        echo_fact("through", f"a delegatecall of {address_book.described(through)}")
    for name, value in grounds.after.items():
        _echo_change(name, grounds.before[name], value, address_book)
    for contract, address in grounds.runs.items():
        echo_fact("while", f"{contract} runs the code at {address}")
    echo_free_text(grounds)
    echo_fact("expires", moment(grounds.expires))
    if proposal.fees:
        most = proposal.fees.gas * proposal.fees.max_fee_per_gas
        echo_fact("costs", f"at most {ether_words(most)} for {proposal.fees.gas:,} gas")
    echo_hashes(proposal)


def echo_free_text(grounds: Grounds) -> None:
    """Print the drafter's own text, so that no part of it passes for a line of ours."""
    echo_quoted("reason", grounds.reason)
    for evidence in grounds.evidence:
        echo_fact("evidence", f"sha256 {evidence.sha256}")
        echo_quoted("", evidence.name)


def echo_unasked(proposal: Proposal) -> None:
    """Print the facts of a proposal that need the chain."""
    echo_fact(
        "not checked",
        "reason, evidence and the state before, with what follows from it, are its drafter's "
        "words; 'chainkit council status' asks the chain",
    )
    for call in proposal.calls:
        if call.function == _UPGRADE:
            code = call.arguments["newImplementation"]
            echo_fact("", f"nobody looked at the code at {code}: 'status' compares it")


def echo_hashes(proposal: Proposal) -> None:
    """Print the hashes that owners compare with each other and with their devices."""
    for name, value in hashes(proposal).items():
        echo_fact(_HASH_LABELS[name], hex0x(value))


def echo_signed_hash(proposal: Proposal) -> None:
    """Print the hash alone that owners sign."""
    name = "safe_tx" if proposal.fees is None else "transaction"
    echo_fact(_HASH_LABELS[name], hex0x(proposal.hash))


def echo_signers(signers: Collection[str], address_book: AddressBook) -> None:
    """Print the signers, by the signatures alone; only the chain knows the owners."""
    for signer in signers:
        echo_fact("signed by", address_book.described(signer))
    if not signers:
        echo_fact("signed by", "nobody yet")


def echo_status(status: ProposalStatus, address_book: AddressBook) -> None:
    """Print the status of a proposal on the chain: its signers, and the code that it names."""
    echo_fact("read at", f"block {status.block}")
    agreement = status.agreement
    echo_fact("signatures", f"{agreement.count} of {status.account.threshold} needed")
    for owner in status.account.owners:
        echo_fact(f"  {agreement.word(owner)}", address_book.described(owner))
    for call in status.change.calls if status.change else ():
        if call.function == _UPGRADE:
            release = releases(call.contract)[0].version
            code = call.arguments["newImplementation"]
            echo_fact("code", f"at {code} is {call.contract} of release {release}")


def echo_slots(slots: Iterable[str]) -> None:
    """Print what the simulation found to change, slot by slot."""
    for line in slots:
        echo_fact("storage", line)


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as scripts read it: its file's content."""
    return proposal_content(proposal) | {"signers": list(proposal.signatures)}


def status_json(status: ProposalStatus) -> dict[str, Any]:
    """Return a proposal's status on the chain as scripts read it."""
    return {
        "block": reference_as_json(status.block),
        "owners": list(status.account.owners),
        "threshold": status.account.threshold,
        "signed": list(status.agreement.signed),
        "approved": list(status.agreement.approved),
        "not_proved": list(status.agreement.not_proved),
        "cautions": list(status.cautions),
        "obstacles": list(status.obstacles),
        "executable": status.is_executable,
    }


def argument_words(name: str, value: Any) -> str:
    """Write an argument as text, the administrators' role by its name."""
    is_role = name == "role" and value == ADMINISTRATOR_ROLE
    return ADMINISTRATOR_ROLE_NAME if is_role else render(value)


def _echo_argument(name: str, value: Any, address_book: AddressBook) -> None:
    """Print an argument in full: an owner must see everything that the signature covers."""
    label = f"  {name}"
    if not isinstance(value, str):
        echo_fact(label, argument_words(name, value))
    elif value == render(value):
        echo_fact(label, address_book.described(value))
    else:
        echo_quoted(label, value)


def _echo_change(name: str, before: str, after: str, address_book: AddressBook) -> None:
    if name.endswith(HTTP_ADDRESS):
        # Up to 512 bytes of a drafter's, which the arguments of the call show.
        new = "the httpAddress of the call"
        echo_fact("changes", f"{name}: {NONE if before == NONE else 'as below'} -> {new}")
        if before != NONE:
            echo_quoted("", before)
        return
    # A fact that a call sets is shown even if its value stays: the value before is not known yet.
    words = f"{before} -> {after}" if before != after else f"{after}, as before"
    words = _ADDRESS.sub(lambda found: address_book.described(found[0]), words)
    echo_fact("changes", f"{name}: {words}")
