"""The status of a proposal at one block of the chain: its signers and its obstacles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from eth_utils.address import to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call, Change, Facts, read_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.proposal.account_state import AccountState
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.agreement import Agreement, read_agreement
from chainkit.council.proposal.cautions import cautions_at
from chainkit.council.proposal.grounds import current_time
from chainkit.council.proposal.nonce_use import NonceUse, find_nonce_use
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe.account import hash_by_contract
from chainkit.errors import ConfigurationError, RefusedRequest
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockHeader, BlockReference


@dataclass(frozen=True, slots=True)
class ProposalStatus:
    """The state of a proposal at one block."""

    account: AccountState
    """The account of the proposal, at the block."""
    agreement: Agreement
    """The owners' agreement."""
    change: Change | None
    """The proposal's change at this block; None where the calls cannot be made there."""
    obstacles: tuple[str, ...]
    """Why the proposal cannot be executed now, a sentence each, safe to print."""
    cautions: tuple[str, ...]
    """Warnings for the reader, a line each, safe to print."""
    nonce_use: NonceUse | None
    """The use of the proposal's nonce, after which it can never be executed; None where it is
    unused."""

    @property
    def block(self) -> BlockReference:
        """The block at which the status was read."""
        return self.account.block

    @property
    def is_executable(self) -> bool:
        """Whether there is no obstacle."""
        return not self.obstacles


def read_status(
    proposal: Proposal, account: AccountState, record: DeploymentRecord, head: BlockHeader
) -> ProposalStatus:
    """Read a proposal's status at ``head``, which is the block of the account's state.

    The proposal has expired where the clock or the block is later than its expiry. Raises
    ConfigurationError where the Safe computes another hash than was signed.
    """
    state = account.contracts
    _check_hash(proposal, state)
    use = find_nonce_use(proposal, state) if proposal.nonce < account.nonce else None
    if use is not None and use.is_own:
        # The proposal is done: its changes at this block do not matter any more.
        return ProposalStatus(account, Agreement(), None, (_used(proposal, use),), (), use)
    change, failure = _change(proposal, account, record)
    agreement = read_agreement(proposal, account)
    obstacles = [
        *expiry(proposal, head),
        *([_used(proposal, use)] if use else _nonce(proposal, account)),
        *_signatures(proposal, account, agreement),
        *_changed(_running(proposal.grounds.runs), _running(running_code(proposal.calls, state))),
        *_changed(proposal.grounds.before, change.before if change else _facts(proposal, state)),
        *([failure] if change is None else []),
    ]
    cautions = cautions_at(account, proposal.calls, proposal.grounds.after)
    return ProposalStatus(account, agreement, change, tuple(obstacles), cautions, use)


def expiry(proposal: Proposal, head: BlockHeader) -> tuple[str, ...]:
    """Return the obstacle that a proposal has expired; nothing where it has not."""
    is_past = current_time(head.timestamp) > proposal.grounds.expires
    return ("it has expired",) if is_past else ()


def running_code(calls: Iterable[Call], state: ContractState) -> Facts:
    """Return the address of the code that each proxy called runs, by the contract's name.

    The registry is no proxy.
    """
    targets = {call.contract: call.target for call in calls}
    return {
        name: to_checksum_address(state.implementation(target))
        for name, target in sorted(targets.items())
        if name in SEQUENCED_LOGS
    }


def _check_hash(proposal: Proposal, state: ContractState) -> None:
    """Compare the hash that the owners sign with the Safe's own computation."""
    transaction = proposal.transaction
    if isinstance(transaction, AccountTransaction):
        return
    found = hash_by_contract(state, transaction)
    if found != transaction.hash:
        subject = f"SafeTx hash by {proposal.account}"
        raise ConfigurationError(subject, hex0x(transaction.hash), hex0x(found))


def _change(
    proposal: Proposal, account: AccountState, record: DeploymentRecord
) -> tuple[Change | None, str]:
    state, sender = account.contracts, account.council.address
    try:
        return read_change(EFFECTS, state, record, sender, proposal.calls), ""
    except (ConfigurationError, RefusedRequest) as error:
        return None, str(error)


def _facts(proposal: Proposal, state: ContractState) -> Facts:
    """Read the facts that the calls concern, as far as possible, where the calls cannot be made."""
    found = dict(proposal.grounds.before)
    for call in proposal.calls:
        with suppress(ConfigurationError, RefusedRequest):
            found |= EFFECTS[call.function].facts(state, call)
    return found


def _used(proposal: Proposal, use: NonceUse) -> str:
    return f"nonce {proposal.nonce} is used already: {use}"


def _nonce(proposal: Proposal, account: AccountState) -> Iterator[str]:
    if proposal.nonce > account.nonce:
        yield f"nonce {proposal.nonce} must wait: the account's next is {account.nonce}"


def _signatures(proposal: Proposal, account: AccountState, agreement: Agreement) -> Iterator[str]:
    for signer in proposal.signatures:
        if signer not in account.owners:
            yield f"signed by {signer}, who is no owner"
    missing = account.threshold - agreement.count
    if missing > 0:
        yield f"{missing} more signature{'s' * (missing > 1)} needed"


def _running(code: Facts) -> Facts:
    return {f"code of {name}": address for name, address in code.items()}


def _changed(drafted: Facts, found: Facts) -> Iterator[str]:
    for name in [*drafted, *(name for name in found if name not in drafted)]:
        before, now = drafted.get(name, "nothing"), found.get(name, "nothing")
        if before != now:
            yield f"changed since it was drafted: {name} was {before}, is {now}"
