"""One transaction of an audit trail: its sender, the account's acts in it, and its faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint, parse_integer
from chainkit.chain.transactions import fetch_receipt
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.log.calls import plain_calls
from chainkit.council.log.events import (
    DETAILS,
    LOG_TOPICS,
    MODULE_EXECUTIONS,
    SAFE,
    SAFE_TOPICS,
    UNREADABLE,
    TrailEvent,
)
from chainkit.council.log.executions import Act, SafeHistory, Sent, read_executions
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.proposal.council import Council
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH, BlockReference, Receipt

Kind = Literal["council", "holder", "deployment", "others"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One transaction, with all its changes."""

    block: BlockReference
    timestamp: int
    """Time of the block, in seconds since 1970."""
    transaction_hash: bytes
    """32 bytes."""
    kind: Kind
    """The sender: the council's account, a node's holder, the deployer, or anybody else."""
    executor: str
    """Checksummed address of the account that sent the transaction, and paid."""
    acts: tuple[Act, ...]
    """The acts of the council's account."""
    events: tuple[TrailEvent, ...]
    """Changes, in the order of the chain."""
    cautions: tuple[str, ...]
    """Cautions for a reader, a line each, safe to print."""
    alarms: tuple[str, ...]
    """Faults, likewise."""


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Reads the transactions of one trail."""

    endpoint: Endpoint
    record: DeploymentRecord
    council: Council
    history: SafeHistory
    kept: KeptProposals

    def read(self, transaction_hash: bytes, events: Sequence[TrailEvent]) -> Entry:
        """Return the entry of a transaction whose events are given, in the order of the chain.

        Raises InconsistentAnswer where the receipt, the block or the logs differ from those of the
        events.
        """
        receipt = self._receipt(transaction_hash, events)
        sent = self._sent(receipt)
        is_deployment = transaction_hash in {each.transaction for each in self.record.contracts}
        acts = self._acts(receipt, sent, events)
        alarms = [
            *(alarm for act in acts for alarm in act.alarms),
            *([] if is_deployment else self._past_the_account(events)),
            *self._without_execution(sent, acts, events),
        ]
        return Entry(
            block=receipt.block.reference,
            timestamp=receipt.block.timestamp,
            transaction_hash=transaction_hash,
            kind=self._kind(acts, events, is_deployment),
            executor=to_checksum_address(sent.sender),
            acts=acts,
            events=tuple(event for event in events if _is_shown(event)),
            cautions=tuple(self._cautions(receipt, acts, events)),
            alarms=tuple(alarms),
        )

    def _receipt(self, transaction_hash: bytes, events: Sequence[TrailEvent]) -> Receipt:
        """Return the receipt, which must hold the very logs that were found by range."""
        receipt = fetch_receipt(self.endpoint, transaction_hash)
        subject = f"receipt of 0x{transaction_hash.hex()}"
        if receipt is None:
            raise self.endpoint.inconsistent(subject, "one, as there are logs", "none")
        block = events[0].block
        if receipt.block.reference != block:
            raise self.endpoint.inconsistent(subject, f"block {block}", receipt.block.reference)
        wanted = set(LOG_TOPICS) | (set(SAFE_TOPICS) if self.council.safe else set())
        names = {each.address for each in self.record.sequenced_logs}
        names |= {self.council.account} if self.council.safe else set()
        held = {
            log.log_index
            for log in receipt.logs
            if log.address == self.record.node_registry.address
            or (log.address in names and log.topics and log.topics[0] in wanted)
        }
        found = {event.log_index for event in events}
        if held != found:
            raise self.endpoint.inconsistent(subject, f"logs {sorted(found)}", sorted(held))
        return receipt

    def _sent(self, receipt: Receipt) -> Sent:
        subject = f"transaction 0x{receipt.transaction_hash.hex()}"
        answer = self.endpoint.transaction(receipt.transaction_hash)
        if answer is None:
            raise self.endpoint.inconsistent(subject, "a transaction, as there are logs", "none")
        hash_, sent = self.endpoint.parsed(subject, _parse_sent, answer)
        if (hash_, sent.to) != (receipt.transaction_hash, receipt.to):
            expected = "the hash asked for, and the receipt's target"
            raise self.endpoint.inconsistent(subject, expected, "others")
        return sent

    def _acts(self, receipt: Receipt, sent: Sent, events: Sequence[TrailEvent]) -> tuple[Act, ...]:
        record, council, kept = self.record, self.council, self.kept
        if council.safe:
            of_safe = [event for event in events if event.contract == SAFE]
            return read_executions(record, council, self.history, kept, sent, of_safe)
        if sent.sender != council.account or sent.to is None:
            return ()
        calls = plain_calls(record, council, sent.to, sent.value, sent.data)
        grounds, caution = kept.grounds_of(record, calls)
        act = Act(
            hash=receipt.transaction_hash,
            nonce=sent.nonce,
            succeeded=True,
            source="calldata",
            calls=calls.calls,
            signers=(),
            trailer=calls.trailer,
            grounds=grounds,
            cautions=(caution,) if caution else (),
        )
        return (act,)

    def _kind(self, acts: Sequence[Act], events: Sequence[TrailEvent], is_deployment: bool) -> Kind:
        if is_deployment:
            return "deployment"
        if any(self._is_others(event) for event in events):
            return "others"
        council = self.council.address
        if acts or any(event.contract == SAFE or council == event.account for event in events):
            return "council"
        holders = all(event.is_holders_own or event.is_repetition for event in events)
        return "holder" if holders else "others"

    def _is_others(self, event: TrailEvent) -> bool:
        """Whether an event reports an act of another account that only the council may do."""
        is_council = event.account in (None, self.council.address)
        return not (event.contract == SAFE or is_council or event.is_holders_own)

    def _past_the_account(self, events: Sequence[TrailEvent]) -> Iterator[str]:
        """Yield the accounts besides the council's that changed our contracts, once each."""
        others = dict.fromkeys(event.account for event in events if self._is_others(event))
        for account in others:
            yield f"changed without the council's account, by {account}"
        named = {event.contract for event in events if event.account is not None}
        for contract in dict.fromkeys(event.contract for event in events):
            if contract not in (SAFE, *named):
                yield f"{contract} changed, and no event says by whom"

    def _without_execution(
        self, sent: Sent, acts: Sequence[Act], events: Sequence[TrailEvent]
    ) -> Iterator[str]:
        """Yield the account's acts, and changes of the account, without its owners."""
        for event in events:
            if event.contract == SAFE and event.name in (*MODULE_EXECUTIONS, UNREADABLE):
                yield f"the Safe: {event.words}"
        if any(act.succeeded for act in acts):
            return
        if any(event.account == self.council.address for event in events):
            yield (
                "the Safe acted, and its owners executed nothing in this transaction"
                if self.council.safe
                else "the council's account acted, and did not send this transaction itself"
            )
        is_created = any(event.name == "SafeSetup" for event in events)
        if not is_created and any(event.is_safe_change for event in events):
            yield "the Safe was changed, and its owners executed nothing in this transaction"

    def _cautions(
        self, receipt: Receipt, acts: Sequence[Act], events: Sequence[TrailEvent]
    ) -> Iterator[str]:
        if any(event.is_safe_change and event.name != "SafeSetup" for event in events):
            yield "the Safe itself is another since: look at its owners, modules and guards"
        for act in acts:
            if act.trailer and act.succeeded and receipt.block.timestamp > act.trailer.expires:
                yield "executed after it had expired"


def _is_shown(event: TrailEvent) -> bool:
    """Return whether an event shows what no other event shows; acts already show executions."""
    return not (event.is_repetition or event.name == DETAILS or event.name.startswith("Execution"))


def _parse_sent(answer: Any) -> tuple[bytes, Sent]:
    sent = Sent(
        sender=parse_bytes(answer["from"], ADDRESS_LENGTH),
        to=parse_bytes(answer["to"], ADDRESS_LENGTH) if answer["to"] else None,
        value=parse_integer(answer["value"]),
        nonce=parse_integer(answer["nonce"]),
        data=parse_bytes(answer["input"]),
    )
    return parse_bytes(answer["hash"], HASH_LENGTH), sent
