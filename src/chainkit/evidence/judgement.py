"""Judges whether an envelope proves that a node lied about the chain (XIP-49 §3.2.7).

    MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY: In the event that a client or watchdog service receives
    a blockchain payload from a node that does not match the same payload fetched directly from
    the blockchain at the specified transaction_hash, the signed envelope should be submitted as
    part of a report.

"For report types that contain cryptographic proof of the failure, a single report is sufficient",
so a verdict of *proved* must hold in every case, even if an endpoint, or the maker of a bundle, has
seen other data. The conditions are:

- The envelope contains the accused node's signature, over envelope and transaction hash together.
- **proved**: the signed bytes are not the ones that every node builds from some log: another
  originator than 0, sequence id 0, a time that no block gives to the sequence id (ADR 45), a
  payer's signature, an unknown or repeated field. No transaction excuses them. Contracts that are
  not ours may use any originator and sequence id.
- **proved**: the transaction calls one of the two payload contracts directly, and the payload and
  topic of that call are not the envelope's. The calldata fixes what a direct call emits, and the
  transaction's hash fixes the calldata: on no branch of the chain, past or future, could an honest
  node have built this envelope from this transaction.
- **not proved**: an honest node could have served this, or the data is not enough to decide.
    - Payload and topic are the transaction's own and only the sequence id, or the second in which
      it was mined, differs: a reorg may have moved the transaction, and the node served it where
      it stood before.
    - The transaction is unknown. It may be invented, or be on a retracted branch: absence is not
      proof.
    - The transaction reached the contracts through another one (a multicall, a contract wallet).
      The payload that it passes on may depend on its state, hence on the branch, so a payload that
      is missing here may have been emitted there. All payloads of the transaction are compared.
    - The contracts are not ours: nobody knows what they emit on another branch, or after an
      upgrade.
    - The envelope does not parse, or the signature is not the accused node's: no part of it accuses
      that node.
- **refuted**: the unsigned envelope and the transaction are, byte for byte, what every honest node
  builds from the chain. The message around them may be encoded otherwise.

The argument for *proved* rests on the payload contracts emitting their arguments unchanged, as
XIP-49 §2.2 asks of them. Where the transaction succeeded here, that is checked; an upgrade to
code that emits something else on another branch only is in the hands of whoever may upgrade.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.evidence.emission import (
    EmittingContracts,
    MinedTransaction,
    posted_payloads,
    promised_payload,
)
from chainkit.evidence.verdict import EnvelopeVerdict, Step, Verdict
from chainkit.protocol.chain_time import block_timestamp, is_of_block
from chainkit.protocol.envelope import (
    QuarantineReason,
    ServedEnvelope,
    breaks_the_xip,
    parse_originator_envelope,
    quarantine_reason,
    recover_node_key,
    unsigned_originator_envelope,
)
from chainkit.protocol.served_topic import served_topic
from chainkit.signatures import address_of, keccak256
from chainkit.types import (
    HASH_LENGTH,
    BlockReference,
    Node,
    PayloadEvent,
    Receipt,
    TopicKind,
)

Find: TypeAlias = Callable[[bytes], MinedTransaction | None]
"""Returns the transaction of a hash, None where the transaction is not known."""


@dataclass(frozen=True, slots=True)
class EnvelopeJudge:
    """The judge of envelopes: the same for an endpoint's answers and for proved data."""

    accused: Node | None
    """None if the node is not registered at the block, or nothing proves that it is."""
    contracts: EmittingContracts
    block: BlockReference
    """No block above this height is read."""
    find: Find
    absence: str
    """The beginning of a sentence about an unknown transaction: "this bundle does not contain"."""

    def judge(self, envelope: bytes) -> EnvelopeVerdict:
        """Return what an OriginatorEnvelope, as served, shows of the accused node.

        Raises the errors of ``find``, and MalformedLog where a payload contract emitted data that
        its code cannot emit.
        """
        return _EnvelopeCheck(self).verdict(envelope)


class _EnvelopeCheck:
    """The steps for one envelope: its signer, its transaction's payload, and whether they agree."""

    def __init__(self, judge: EnvelopeJudge) -> None:
        self._against = judge
        self._steps: list[Step] = []
        self._served: ServedEnvelope | None = None
        self._is_signed: bool | None = False

    def verdict(self, data: bytes) -> EnvelopeVerdict:
        verdict, reason = self._judge(data)
        return EnvelopeVerdict(verdict, reason, tuple(self._steps), self._served, self._is_signed)

    def _judge(self, data: bytes) -> tuple[Verdict, str]:
        try:
            served = self._served = parse_originator_envelope(data)
        except MalformedEnvelope as error:
            self._note("envelope", "no envelope with a BlockchainProof")
            return Verdict.NOT_PROVED, str(error)
        self._note("envelope", _identity(served))
        if (reason := self._foreign_signature(served)) is not None:
            return Verdict.NOT_PROVED, reason
        self._is_signed = True
        if (reason := _impossible_form(served, self._against.contracts)) is not None:
            return Verdict.PROVED, reason
        transaction = self._against.find(served.transaction_hash)
        last = self._against.block
        if transaction is None or transaction.receipt.block.number > last.number:
            hash_ = served.transaction_hash.hex()
            self._note("transaction", f"0x{hash_}, unknown up to block {last}")
            return Verdict.NOT_PROVED, (
                f"{self._against.absence} the transaction that it names: that may be invented or "
                "stand on a retracted branch, and absence is not proof"
            )
        return self._compare(served, transaction)

    def _foreign_signature(self, served: ServedEnvelope) -> str | None:
        """Return why the envelope does not accuse the node, or None."""
        accused = self._against.accused
        try:
            signer = recover_node_key(served)
        except InvalidSignature as error:
            self._note("signature", "invalid")
            return f"nobody can be held to it: {error}"
        if accused is None:
            self._note("signature", f"by {address_of(signer)}")
            self._is_signed = None
            return "no key is known to be the accused node's"
        if signer != accused.signing_key:
            self._note("signature", f"by {address_of(signer)}, not by the accused node")
            return "the accused node did not sign it, so it cannot be held to it"
        self._note("signature", f"by node {accused.node_id}")
        return None

    def _compare(
        self, served: ServedEnvelope, transaction: MinedTransaction
    ) -> tuple[Verdict, str]:
        receipt = transaction.receipt
        emitted = posted_payloads(receipt, self._against.contracts)
        promised = promised_payload(transaction, emitted, self._against.contracts)
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
        if not self._against.contracts.are_own:
            return Verdict.NOT_PROVED, (
                "nobody knows what contracts that are not chainkit's own emit on another branch, "
                "or after an upgrade"
            )
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

    def _note(self, name: str, found: str) -> None:
        self._steps.append(Step(name, found))


def _impossible_form(served: ServedEnvelope, contracts: EmittingContracts) -> str | None:
    """Return why no log of any chain gives these signed bytes, or None if one might.

    Sequence id and time are taken from the served envelope; everything else in an unsigned envelope
    follows from the payload (XIP-49 §3.2.1), and so does its one serialization.
    """
    place = served.originator_id, served.sequence_id
    if (reason := contracts.why_no_place(*place)) is not None:
        return reason
    if not is_of_block(served.originator_ns, served.sequence_id):
        number = served.sequence_id
        return f"no block gives payload {number} the envelope's time, {served.originator_ns} ns"
    # The kind of event is not part of the bytes: any kind will do.
    event = PayloadEvent(
        TopicKind.GROUP_MESSAGE,
        bytes(HASH_LENGTH),
        served.client_envelope,
        served.sequence_id,
        served.originator_id,
    )
    timestamp = block_timestamp(served.originator_ns)
    if unsigned_originator_envelope(event, timestamp) != served.unsigned_originator_envelope:
        return "the signed bytes hold more than payload, sequence id and time: no node adds to them"
    return None


def _same_payload(served: ServedEnvelope, event: PayloadEvent) -> bool:
    """Return whether an envelope carries an event's payload, on the event's topic.

    The envelope names its topic only inside the payload: a node must quarantine equal bytes that
    were posted to another topic, and must not serve them under the named topic (§3.3.2).
    """
    return (
        served.client_envelope == event.payload
        and quarantine_reason(event) != QuarantineReason.WRONG_TOPIC
    )


def _refutation(event: PayloadEvent) -> str:
    reason = "what the node signed is byte for byte what the chain demands"
    invalid = quarantine_reason(event)
    if invalid is None or not breaks_the_xip(invalid):
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
    topic = served_topic(event.kind, event.identifier, event.payload).hex()
    return f"{_digest(event.payload)}, to topic 0x{topic}"


def _digest(payload: bytes) -> str:
    return f"{len(payload)} bytes, keccak256 0x{keccak256(payload).hex()[:16]}…"


def _transaction(receipt: Receipt, promised: PayloadEvent | None, payloads: int) -> str:
    how = "a direct call" if promised is not None else "an indirect call"
    what = f"payloads: {payloads}" if receipt.succeeded else "reverted"
    hash_ = receipt.transaction_hash.hex()
    return f"0x{hash_} in block {receipt.block.reference}, {how}, {what}"
