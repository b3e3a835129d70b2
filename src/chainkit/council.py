"""Does a misbehavior report prove that a node served what the chain never held? (XIP-49 §3.2.7)

    MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY: In the event that a client or watchdog service receives
    a blockchain payload from a node that does not match the same payload fetched directly from
    the blockchain at the specified transaction_hash, the signed envelope should be submitted as
    part of a report.

"For report types that contain cryptographic proof of the failure, a single report is sufficient",
so a verdict of *proved* must hold whatever the council's own endpoint has or has not seen. What
that asks for:

- The envelope bears the accused node's signature, over envelope and transaction hash together.
- **proved**: the signed bytes are not the ones that every node builds from some log: another
  originator than 0, sequence id 0, a time that no block has, a payer's signature, an unknown or
  repeated field. No transaction excuses them.
- **proved**: the transaction calls one of the two payload contracts directly, and what it asks
  that contract to emit is not the envelope's payload and topic. What a direct call emits is fixed
  by its calldata, and the calldata by the transaction's hash: on no branch of the chain, past or
  future, could an honest node have built this envelope from this transaction.
- **not proved**: an honest node could have served this, or nobody can tell.
    - Payload and topic are the transaction's own and only the sequence id or the time differs: a
      reorg may have moved the transaction, and the node served it where it stood before.
    - The endpoint knows no such transaction. It may be invented, or stand on a retracted branch:
      absence is not proof.
    - The transaction reached the contracts through another one (a multicall, a contract wallet).
      What that one passes on may depend on its state, hence on the branch, so a payload that is
      missing here may have been emitted there. All payloads of the transaction are compared.
    - The envelope does not parse, or the signature is not the accused node's: nothing in it can
      be held against that node.
- **refuted**: the envelope is, byte for byte, what every honest node builds from the chain.

The argument for *proved* rests on the payload contracts emitting their arguments unchanged, as
XIP-49 §2.2 asks of them. Where the transaction succeeded here, that is checked; an upgrade to
code that emits something else on another branch only is in the hands of whoever may upgrade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chainkit.chain import Endpoint
from chainkit.decode import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
)
from chainkit.deployment import DeploymentRecord
from chainkit.envelope import (
    QuarantineReason,
    ServedEnvelope,
    parse_originator_envelope,
    quarantine_reason,
    recover_node_key,
    unsigned_originator_envelope,
)
from chainkit.errors import InconsistentAnswer, InvalidSignature, MalformedData, MalformedEnvelope
from chainkit.interface import shipped_interface
from chainkit.registry import Registry, status_word
from chainkit.report import BlockchainInconsistencyReport, parse_inconsistency_report
from chainkit.signatures import address_of, keccak256
from chainkit.transactions import Receipt, fetch_input, fetch_receipt
from chainkit.types import (
    BLOCKCHAIN_ORIGINATOR_ID,
    HASH_LENGTH,
    NANOSECONDS_PER_SECOND,
    BlockReference,
    Node,
    PayloadEvent,
    identity_update_created,
    message_sent,
)


class Verdict(StrEnum):
    """What a report, or one envelope of it, shows."""

    PROVED = "proved"
    """The node signed what no branch of the chain can have held."""
    NOT_PROVED = "not proved"
    """Nothing that an honest node cannot have done; nor is its innocence shown."""
    REFUTED = "refuted"
    """The node served what the chain holds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at, and what was found, safe to print."""

    name: str
    found: str


@dataclass(frozen=True, slots=True)
class EnvelopeVerdict:
    """What one envelope of a report shows."""

    verdict: Verdict
    reason: str
    steps: tuple[Step, ...]
    served: ServedEnvelope | None
    """None if the bytes are no envelope."""


@dataclass(frozen=True, slots=True)
class ReportVerdict:
    """What a report shows, read at one block."""

    block: BlockReference
    report: BlockchainInconsistencyReport
    accused: Node | None
    """None if no such node is registered at the block."""
    steps: tuple[Step, ...]
    envelopes: tuple[EnvelopeVerdict, ...]

    @property
    def verdict(self) -> Verdict:
        """Proved by any one envelope; refuted only if every one is."""
        verdicts = {envelope.verdict for envelope in self.envelopes}
        if Verdict.PROVED in verdicts:
            return Verdict.PROVED
        return Verdict.REFUTED if verdicts == {Verdict.REFUTED} else Verdict.NOT_PROVED


def verify_report(
    data: bytes, endpoint: Endpoint, record: DeploymentRecord, block: BlockReference
) -> ReportVerdict:
    """Check a signed MisbehaviorReport against the chain up to a block (XIP-49 §3.2.7).

    Raises MalformedData for anything but a signed report of type BLOCKCHAIN_INCONSISTENCY, and
    ChainError where the endpoint gives no clear answer, also if the chain forked meanwhile.
    """
    report = parse_inconsistency_report(data)
    nodes = Registry(endpoint, record.node_registry.address).nodes(block)
    accused = next((node for node in nodes if node.node_id == report.misbehaving_node_id), None)
    verdicts = [
        _EnvelopeCheck(endpoint, record, block, accused).verdict(envelope)
        for envelope in report.envelopes
    ]
    if (found := endpoint.header(block.number).reference) != block:
        raise InconsistentAnswer(f"block {block.number} at {endpoint.name}", block, found)
    steps = (
        Step("report", f"BLOCKCHAIN_INCONSISTENCY, envelopes: {len(report.envelopes)}"),
        Step("reporter", _reporter(report, nodes)),
        Step("accused", _accused(report, accused)),
        Step("block", str(block)),
    )
    return ReportVerdict(block, report, accused, steps, tuple(verdicts))


class _EnvelopeCheck:
    """The steps for one envelope: who signed it, what its transaction emits, do they agree."""

    def __init__(
        self,
        endpoint: Endpoint,
        record: DeploymentRecord,
        block: BlockReference,
        accused: Node | None,
    ) -> None:
        self._endpoint = endpoint
        self._record = record
        self._block = block
        self._accused = accused
        self._steps: list[Step] = []
        self._served: ServedEnvelope | None = None

    def verdict(self, data: bytes) -> EnvelopeVerdict:
        verdict, reason = self._judge(data)
        return EnvelopeVerdict(verdict, reason, tuple(self._steps), self._served)

    def _judge(self, data: bytes) -> tuple[Verdict, str]:
        try:
            served = self._served = parse_originator_envelope(data)
        except MalformedEnvelope as error:
            self._note("envelope", "no envelope with a BlockchainProof")
            return Verdict.NOT_PROVED, str(error)
        self._note("envelope", _identity(served))
        if (reason := self._foreign_signature(served)) is not None:
            return Verdict.NOT_PROVED, reason
        if (reason := _impossible_form(served)) is not None:
            return Verdict.PROVED, reason
        receipt = fetch_receipt(self._endpoint, served.transaction_hash)
        if receipt is None or receipt.block.number > self._block.number:
            hash_ = served.transaction_hash.hex()
            self._note("transaction", f"0x{hash_}, unknown up to block {self._block}")
            return Verdict.NOT_PROVED, (
                "this endpoint knows no such transaction: it may be invented or stand on a "
                "retracted branch, and absence is not proof"
            )
        return self._compare(served, receipt)

    def _foreign_signature(self, served: ServedEnvelope) -> str | None:
        """Say why the envelope cannot be held against the accused node, or None."""
        try:
            signer = recover_node_key(served)
        except InvalidSignature as error:
            self._note("signature", "invalid")
            return f"nobody can be held to it: {error}"
        if self._accused is None:
            self._note("signature", f"by {address_of(signer)}")
            return "the accused node is not registered, so no key is its own"
        if signer != self._accused.signing_key:
            self._note("signature", f"by {address_of(signer)}, not by the accused node")
            return "the accused node did not sign it, so it cannot be held to it"
        self._note("signature", f"by node {self._accused.node_id}")
        return None

    def _compare(self, served: ServedEnvelope, receipt: Receipt) -> tuple[Verdict, str]:
        emitted = self._emitted(receipt)
        promised = self._promised(receipt, emitted)
        self._note("transaction", _transaction(receipt, promised, len(emitted)))
        same = [event for event in emitted if _same_payload(served, event)]
        for event in same:
            expected = unsigned_originator_envelope(event, receipt.block.timestamp)
            if expected == served.unsigned_originator_envelope:
                return Verdict.REFUTED, _refutation(event)
        if same:
            times = f"sequence id {same[0].sequence_id}, time {receipt.block.timestamp} s"
            self._note("chain", f"the same payload and topic, with {times}")
            return Verdict.NOT_PROVED, (
                "payload and topic are the transaction's own; a reorg may have moved it, and an "
                "honest node could have served it where it stood before"
            )
        for event in emitted:
            self._note("chain", f"{_described(event)}, sequence id {event.sequence_id}")
        if promised is None:
            return Verdict.NOT_PROVED, (
                "no direct call of a payload contract fixes what this transaction emits: it may "
                "depend on the state, and so on the branch"
            )
        if _same_payload(served, promised):
            return Verdict.NOT_PROVED, (
                "the transaction reverted here, but where it succeeds it emits this payload"
            )
        return Verdict.PROVED, (
            f"{_mismatch(served, promised)}; what a direct call emits is fixed by its calldata, "
            "so no branch of the chain ever held this"
        )

    def _emitted(self, receipt: Receipt) -> list[PayloadEvent]:
        """Return the payloads that the transaction posted to our two contracts."""
        topics = ((MESSAGE_SENT_TOPIC,), (IDENTITY_UPDATE_CREATED_TOPIC,))
        return [
            decode_payload_event(log)
            for log in receipt.logs
            if log.address in self._record.payload_addresses and log.topics in topics
        ]

    def _promised(self, receipt: Receipt, emitted: Sequence[PayloadEvent]) -> PayloadEvent | None:
        """Return what a direct call emits wherever it succeeds, None if nothing fixes that.

        Its sequence id is the one emitted here, or 0 where the call reverted.
        """
        calldata = fetch_input(self._endpoint, receipt.transaction_hash)
        sequence_id = emitted[0].sequence_id if emitted else 0
        try:
            promised = self._arguments(receipt.to, calldata, sequence_id)
        except MalformedData:
            return None  # an administrator's call, or one that always reverts
        # A contract that does not emit its arguments unchanged is none that the proof rests on.
        kept_here = not receipt.succeeded or list(emitted) == [promised]
        return promised if kept_here else None

    def _arguments(
        self, called: bytes | None, calldata: bytes, sequence_id: int
    ) -> PayloadEvent | None:
        if called == self._record.group_messages.address:
            interface = shipped_interface("GroupMessages")
            arguments = interface.arguments("addMessage", calldata)
            return message_sent(arguments["groupId"], arguments["message"], sequence_id)
        if called == self._record.identity_updates.address:
            interface = shipped_interface("IdentityUpdates")
            arguments = interface.arguments("addIdentityUpdate", calldata)
            return identity_update_created(arguments["inboxId"], arguments["update"], sequence_id)
        return None

    def _note(self, name: str, found: str) -> None:
        self._steps.append(Step(name, found))


def _impossible_form(served: ServedEnvelope) -> str | None:
    """Say why no log of any chain gives these signed bytes, or None if one might.

    Sequence id and time are taken as served; everything else in an unsigned envelope follows
    from the payload (XIP-49 §3.2.1), and its one serialization with it.
    """
    if served.originator_id != BLOCKCHAIN_ORIGINATOR_ID:
        return f"the envelope names originator {served.originator_id}, and the blockchain is 0"
    if served.sequence_id == 0:
        return "the envelope has sequence id 0, and the contracts count from 1"
    timestamp, rest = divmod(served.originator_ns, NANOSECONDS_PER_SECOND)
    if rest or timestamp < 0:
        return f"the envelope's time, {served.originator_ns} ns, is no block's"
    # The kind of event does not enter the bytes: any one stands for all.
    event = message_sent(bytes(HASH_LENGTH), served.client_envelope, served.sequence_id)
    if unsigned_originator_envelope(event, timestamp) != served.unsigned_originator_envelope:
        return "the signed bytes hold more than payload, sequence id and time: no node adds to them"
    return None


def _same_payload(served: ServedEnvelope, event: PayloadEvent) -> bool:
    """Tell whether an envelope carries an event's payload, on its topic.

    The envelope names its topic only inside the payload: equal bytes posted to another topic
    than they name are what a node must quarantine, not serve under the topic named (§3.3.2).
    """
    return (
        served.client_envelope == event.payload
        and quarantine_reason(event) is not QuarantineReason.WRONG_TOPIC
    )


def _refutation(event: PayloadEvent) -> str:
    reason = "the envelope is byte for byte what the chain holds"
    invalid = quarantine_reason(event)
    if invalid is None:
        return reason
    return f"{reason}; that it was served at all ({invalid}) is another misbehavior (type 7)"


def _mismatch(served: ServedEnvelope, promised: PayloadEvent) -> str:
    if served.client_envelope == promised.payload:
        return f"the payload names another topic than it was posted to ({_described(promised)})"
    return f"the transaction posts another payload ({_described(promised)})"


def _identity(served: ServedEnvelope) -> str:
    return (
        f"sequence id {served.sequence_id} of originator {served.originator_id}, "
        f"{_digest(served.client_envelope)}"
    )


def _described(event: PayloadEvent) -> str:
    topic = event.kind.topic(event.identifier).hex()
    return f"{_digest(event.payload)}, to topic 0x{topic}"


def _digest(payload: bytes) -> str:
    return f"{len(payload)} bytes, keccak256 0x{keccak256(payload).hex()[:16]}…"


def _transaction(receipt: Receipt, promised: PayloadEvent | None, payloads: int) -> str:
    how = "a direct call" if promised is not None else "an indirect call"
    what = f"payloads: {payloads}" if receipt.succeeded else "reverted"
    hash_ = receipt.transaction_hash.hex()
    return f"0x{hash_} in block {receipt.block.reference}, {how}, {what}"


def _reporter(report: BlockchainInconsistencyReport, nodes: Sequence[Node]) -> str:
    key = report.reporter_public_key
    node = next((node for node in nodes if node.signing_key == key), None)
    who = f"node {node.node_id}" if node else "not a registered node"
    return f"{address_of(key)}, {who}"


def _accused(report: BlockchainInconsistencyReport, accused: Node | None) -> str:
    if accused is None:
        return f"node {report.misbehaving_node_id}, not registered"
    return (
        f"node {accused.node_id}, {status_word(accused)}, key of {address_of(accused.signing_key)}"
    )
