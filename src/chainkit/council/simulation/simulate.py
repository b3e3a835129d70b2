"""A transaction simulated on a block: called, traced, and every changed slot named."""

from __future__ import annotations

from collections.abc import Sequence

from chainkit.contracts.artifacts import identify_release
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.state import IMPLEMENTATION_SLOT, ContractState
from chainkit.council.calls import Call
from chainkit.council.safe import SafeTransaction
from chainkit.council.safe.account import SafeAccount
from chainkit.council.simulation.attempt import (
    Contracts,
    call_message,
    contracts_of,
    execute,
    inner_messages,
    require_overrides,
    try_message,
)
from chainkit.council.simulation.difference import StateDifference, decode_difference, is_expected
from chainkit.council.simulation.keys import CandidateKeys, read_candidate_keys
from chainkit.council.simulation.layouts import (
    SAFE_NONCE_SLOT,
    Accounts,
    known_accounts,
    known_safe,
)
from chainkit.council.simulation.safe_overrides import (
    EXECUTOR,
    approved_execution,
    suppose_approval,
)
from chainkit.council.simulation.trace import METHOD, Message, RawDifference, trace_difference
from chainkit.errors import ConfigurationError, NoTracing
from chainkit.types import ADDRESS_LENGTH

_LIST_END = (1).to_bytes(ADDRESS_LENGTH, "big")
"""With what a Safe's lists of owners and modules begin and end."""


def simulate_message(
    state: ContractState, record: DeploymentRecord, calls: Sequence[Call], message: Message
) -> StateDifference:
    """Return the changes of a transaction of an account with a key at the state's block.

    ``calls`` are the calls that people are shown. Raises RefusedRequest with the contract's own
    error where the transaction reverts, NoTracing where the endpoint cannot trace, and
    ConfigurationError where nothing changes.
    """
    try_message(state, record, message)
    raw = trace_difference(state.endpoint, state.block, message, {})
    _require_changes(raw)
    keys = read_candidate_keys(state, calls) | CandidateKeys.of_addresses([message.sender])
    accounts, coinbase = _accounts(state, record, raw), state.endpoint.fee_recipient(state.block)
    return decode_difference(raw, accounts, keys, state.word, message.sender, coinbase)


def simulate_safe_transaction(
    state: ContractState,
    record: DeploymentRecord,
    calls: Sequence[Call],
    transaction: SafeTransaction,
    account: SafeAccount,
    multi_send: bytes,
) -> StateDifference:
    """Return the changes of a Safe's transaction at the state's block once its owners have signed.

    The calls are run first, one after the other, as if the Safe made them; then the Safe executes
    all, which must change the same and its nonce. Arguments and errors as in ``simulate_message``
    and ``try_safe_transaction``; raises InconsistentAnswer where the two differ.
    """
    contracts = contracts_of(record, transaction.safe)
    approval = suppose_approval(transaction, account)
    require_overrides(state, transaction, approval)
    inner = _run_inner(state, contracts, inner_messages(transaction, multi_send))
    _require_changes(inner)
    execute(state, contracts, transaction, approval)
    message = approved_execution(transaction, approval)
    raw = trace_difference(state.endpoint, state.block, message, approval.overrides)
    coinbase = state.endpoint.fee_recipient(state.block)
    found = decode_difference(
        raw,
        {**_accounts(state, record, raw), transaction.safe: known_safe(account.version)},
        read_candidate_keys(state, calls) | _safe_keys(account),
        state.word,
        EXECUTOR,
        coinbase,
    )
    if not found.undecoded:
        _require_same(state, transaction.safe, inner, raw, coinbase)
    return found


def _run_inner(
    state: ContractState, contracts: Contracts, messages: Sequence[Message]
) -> RawDifference:
    """Return the changes of the calls, each run on the state after the calls before."""
    found = RawDifference()
    for message in messages:
        call_message(state, contracts, message, found.words)
        found = found.then(trace_difference(state.endpoint, state.block, message, found.words))
    return found


def _accounts(state: ContractState, record: DeploymentRecord, raw: RawDifference) -> Accounts:
    """Return the contracts whose variables this package knows, by the code that each runs."""
    touched = {address for address, _ in raw.storage}
    strange = [
        log.address
        for log in record.sequenced_logs
        if log.address in touched and not _runs_releases(state, raw, log)
    ]
    return known_accounts(record, strange)


def _runs_releases(state: ContractState, raw: RawDifference, log: DeployedContract) -> bool:
    """Return whether a proxy's code, before and after an upgrade, is a release of its contract."""
    slot = (log.address, IMPLEMENTATION_SLOT)
    words = raw.storage[slot] if slot in raw.storage else [state.word(*slot)]
    codes = [state.code(word.to_bytes(32, "big")[-ADDRESS_LENGTH:]) for word in words]
    return all(identify_release(log.name, code) is not None for code in codes)


def _safe_keys(account: SafeAccount) -> CandidateKeys:
    owners = [bytes.fromhex(address[2:]) for address in (account.address, *account.owners)]
    return CandidateKeys.of_addresses([*owners, _LIST_END])


def _require_changes(raw: RawDifference) -> None:
    if not raw.storage:
        expected = "a transaction that changes something"
        raise ConfigurationError("simulation", expected, "no changed slot")


def _require_same(
    state: ContractState,
    safe: bytes,
    inner: RawDifference,
    executed: RawDifference,
    coinbase: bytes,
) -> None:
    """Prove that the Safe's changes are those of its calls, and its nonce."""
    nonce = executed.storage.get((safe, SAFE_NONCE_SLOT), (0, 0))
    if nonce[1] != nonce[0] + 1:
        subject, expected = f"{METHOD} at {state.endpoint.name}", "support of state overrides"
        raise NoTracing(subject, expected, "a difference without the Safe's nonce")
    slots = {**inner.storage, (safe, SAFE_NONCE_SLOT): nonce}
    by_calls, by_safe = (
        {one for one in raw.accounts if not is_expected(one, sender, coinbase)}
        for raw, sender in ((inner, safe), (executed, EXECUTOR))
    )
    if slots != executed.storage or by_calls != by_safe:
        got = f"{len(executed.storage)} changed slots that are not the {len(slots)} of its calls"
        raise state.endpoint.inconsistent(METHOD, "what the Safe's calls change", got)
