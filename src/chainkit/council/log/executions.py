"""Executions of the council's Safe: the calls behind each hash that the Safe reports as executed.

The Safe's event has a hash and nothing else. The executed calls are searched in the transaction's
calldata, in the events of a SafeL2, and in kept proposals. If calls have this hash, with a nonce of
the Safe, the owners signed them. So the source of the calls does not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Literal

from eth_utils.address import to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.log.calls import TrailCall, calls_of
from chainkit.council.log.events import DETAILS, EXECUTIONS, TrailEvent
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.log.signers import Signer, signers_of
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.grounds import Grounds, Trailer
from chainkit.council.safe import Execution, Operation, SafeTransaction, pack, parse_exec_calldata
from chainkit.errors import MalformedData
from chainkit.text.printable import printable

Source = Literal["calldata", "event", "proposal"]


@dataclass(frozen=True, slots=True)
class Act:
    """An act of the council's account: an execution of its Safe, or its own transaction."""

    hash: bytes
    """32 bytes: the SafeTx hash; of a plain account, the transaction's own."""
    nonce: int | None
    """The account's nonce; None where it is not known."""
    succeeded: bool
    source: Source | None
    """The source of the calls; None where they were not found."""
    calls: tuple[TrailCall, ...]
    signers: tuple[Signer, ...]
    trailer: Trailer | None
    grounds: Grounds | None
    """The grounds of a kept proposal with the trailer's digest and these very calls."""
    cautions: tuple[str, ...] = ()
    """Cautions for a reader, a line each, safe to print."""
    alarms: tuple[str, ...] = ()
    """Faults, likewise."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A transaction as it was sent."""

    sender: bytes
    """20 bytes."""
    to: bytes | None
    """20 bytes; None if the transaction created a contract."""
    value: int
    """Wei."""
    nonce: int
    """The sender's nonce."""
    data: bytes


@dataclass(frozen=True, slots=True)
class SafeHistory:
    """All events of the Safe in the range, for the reading of each transaction."""

    owners: Mapping[bytes, frozenset[str]]
    """By transaction: the checksummed owners before it."""
    nonces: Mapping[bytes, range]
    """By transaction: the nonces that its executions used, by the Safe's nonce at the end."""
    approvals: Collection[tuple[bytes, str]]
    """Hashes with the owners who approved each by a transaction of their own."""
    nonce: int
    """The nonce of the Safe's next transaction, at the end."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    execution: Execution
    source: Source
    caller: str | None
    """Checksummed address of the account that called the Safe; None where it is not known."""


MOST_NONCES: Final = 10_000
"""Most executions of a council's Safe: its owners never reach a nonce beyond."""

_NO_DATA: Final = "the transaction does not tell its calls; a proposal's file would (--proposals)"


def safe_history(events: Sequence[TrailEvent], owners: Collection[str], nonce: int) -> SafeHistory:
    """Go back from the Safe's owners and nonce at the end to those of each transaction before."""
    present = set(owners)
    before: dict[bytes, frozenset[str]] = {}
    nonces: dict[bytes, range] = {}
    following = nonce
    for event in reversed(events):
        if event.name == "AddedOwner":
            present.discard(event.arguments["owner"])
        elif event.name == "RemovedOwner":
            present.add(event.arguments["owner"])
        elif event.name == "SafeSetup":
            present.clear()
        elif event.name in EXECUTIONS:
            following -= 1
            last = nonces.get(event.transaction_hash, range(following, following + 1)).stop
            nonces[event.transaction_hash] = range(following, last)
        before[event.transaction_hash] = frozenset(present)
    approvals = {
        (event.arguments["approvedHash"], event.arguments["owner"])
        for event in events
        if event.name == "ApproveHash"
    }
    return SafeHistory(before, nonces, approvals, nonce)


def read_executions(
    record: DeploymentRecord,
    council: Council,
    history: SafeHistory,
    kept: KeptProposals,
    sent: Sent,
    events: Sequence[TrailEvent],
) -> tuple[Act, ...]:
    """Return what the Safe executed in one transaction, whose events of the Safe are given."""
    candidates, remarks = _candidates(council, sent, events)
    acts: list[Act] = []
    for event in events:
        if event.name not in EXECUTIONS:
            continue
        act = _act(record, council, history, kept, candidates, event)
        cautions, alarms = act.cautions, act.alarms
        if act.source is None:
            cautions = (*remarks, _NO_DATA)
        elif sent.to != council.account:
            cautions = (*remarks, *cautions)
        if any(act.hash == other.hash for other in acts):
            alarms = (*alarms, "the Safe says it twice: other code has spoken for it")
        acts.append(replace(act, cautions=cautions, alarms=alarms))
    return tuple(acts)


def _candidates(
    council: Council, sent: Sent, events: Sequence[TrailEvent]
) -> tuple[list[_Candidate], list[str]]:
    """Return calls that may have been executed, and remarks on how they reached the Safe."""
    found: list[_Candidate] = []
    remarks: list[str] = []
    if sent.to == council.account:
        try:
            execution = parse_exec_calldata(sent.data)
        except MalformedData as error:
            remarks.append(printable(f"its calldata is no execution: {error}"))
        else:
            found.append(_Candidate(execution, "calldata", to_checksum_address(sent.sender)))
    else:
        through = to_checksum_address(sent.to) if sent.to else "the creation of a contract"
        remarks.append(f"executed through {through}")
    found += [each for event in events if event.name == DETAILS for each in _detailed(event)]
    return found, remarks


def _detailed(event: TrailEvent) -> Iterator[_Candidate]:
    """Yield the executions that a SafeL2 announces."""
    arguments = event.arguments
    if arguments["operation"] in tuple(Operation):
        execution = Execution(
            to=bytes.fromhex(arguments["to"][2:]),
            value=arguments["value"],
            data=arguments["data"],
            operation=Operation(arguments["operation"]),
            safe_tx_gas=arguments["safeTxGas"],
            base_gas=arguments["baseGas"],
            gas_price=arguments["gasPrice"],
            gas_token=bytes.fromhex(arguments["gasToken"][2:]),
            refund_receiver=bytes.fromhex(arguments["refundReceiver"][2:]),
            signatures=arguments["signatures"],
        )
        yield _Candidate(execution, "event", None)


def _act(
    record: DeploymentRecord,
    council: Council,
    history: SafeHistory,
    kept: KeptProposals,
    candidates: Sequence[_Candidate],
    event: TrailEvent,
) -> Act:
    hash_: bytes = event.arguments["txHash"]
    succeeded = event.name == "ExecutionSuccess"
    counted = history.nonces[event.transaction_hash]
    found = _found(hash_, counted, council, history, kept, candidates)
    if found is None:
        return Act(hash_, None, succeeded, None, (), (), None, None)
    transaction, signatures, source, caller = found
    calls = calls_of(record, council, transaction)
    grounds, caution = kept.grounds_of(record, calls)
    owners = history.owners[event.transaction_hash]
    signers, fault = signers_of(hash_, signatures, owners, history.approvals, caller)
    alarms = [calls.alarm] if calls.alarm else []
    if transaction.nonce not in counted:
        alarms.append(
            f"it has nonce {transaction.nonce}, where {_range_words(counted)} was counted:"
            " an execution is hidden, or the Safe's storage was rewritten"
        )
    return Act(
        hash=hash_,
        nonce=transaction.nonce,
        succeeded=succeeded,
        source=source,
        calls=calls.calls,
        signers=signers,
        trailer=calls.trailer,
        grounds=grounds,
        cautions=tuple(each for each in (caution, *_cautions(transaction, fault)) if each),
        alarms=tuple(alarms),
    )


def _found(
    hash_: bytes,
    counted: range,
    council: Council,
    history: SafeHistory,
    kept: KeptProposals,
    candidates: Sequence[_Candidate],
) -> tuple[SafeTransaction, bytes, Source, str | None] | None:
    """Return the calls with the hash, their signatures and source, and the caller of the Safe.

    The counted nonces are tried first, then the nonces that the Safe ever had, of the first
    MOST_NONCES.
    """
    # A Safe that let other code act in its place may report more executions than its nonce counts.
    possible = (each for each in counted if each >= 0)
    for nonce in chain(possible, range(min(history.nonce, MOST_NONCES))):
        for each in candidates:
            transaction = each.execution.of(
                chain_id=council.chain_id, safe=council.account, nonce=nonce
            )
            if transaction.hash == hash_:
                return transaction, each.execution.signatures, each.source, each.caller
    proposal = kept.by_hash.get(hash_)
    if proposal is None or not isinstance(proposal.transaction, SafeTransaction):
        return None
    signatures = pack(hash_, proposal.signatures.values())
    return proposal.transaction, signatures, "proposal", None


def _cautions(transaction: SafeTransaction, fault: str) -> Iterator[str]:
    if fault:
        yield fault
    if transaction.gas_price:
        receiver = to_checksum_address(transaction.refund_receiver)
        yield f"the Safe repaid gas, to {receiver} (the zero address is whoever executed)"


def _range_words(counted: range) -> str:
    return str(counted[0]) if len(counted) == 1 else f"one of {counted[0]} to {counted[-1]}"
