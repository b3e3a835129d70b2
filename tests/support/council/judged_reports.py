"""A chain of one transaction, envelopes of it, and the verdict on a report about them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import eth_abi

from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.council.evidence import ReportVerdict, Verdict, verify_report
from chainkit.protocol.envelope import sign_originator_envelope, unsigned_originator_envelope
from chainkit.protocol.reports import sign_inconsistency_report
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import PayloadEvent, TopicKind, message_sent
from support.council.fake_registry import ADDRESS, FakeRegistry, block, block_hash, hexed, node_key
from support.endpoints.fake_endpoint import FakeProvider
from support.payloads import commit

MESSAGES, UPDATES, SEQUENCE, WALLET = (bytes([n]) * 20 for n in (0xA1, 0xA2, 0xA3, 0xB1))
GROUP, OTHER_GROUP, INBOX = b"\x01" * 32, b"\x02" * 32, b"\x03" * 32
HASH = keccak256(b"transaction")
MINED_IN = 7
TIME = 1_700_000_000 + MINED_IN
PAYLOAD = commit(GROUP)
HONEST = message_sent(GROUP, PAYLOAD, 5)
AUDITOR = SigningKey(bytes(31) + b"\x55")
NODE = node_key(1)


def deployed(name: str, address: bytes) -> DeployedContract:
    return DeployedContract(name, address, 1, bytes(32))


RECORD = DeploymentRecord(
    31337,
    block_hash(0),
    deployed("GroupMessages", MESSAGES),
    deployed("IdentityUpdates", UPDATES),
    deployed("NodeRegistry", ADDRESS),
    deployed("OriginatorSequence", SEQUENCE),
    deployer=bytes(20),
)


def event_log(event: PayloadEvent, address: bytes | None = None) -> dict[str, Any]:
    message = event.kind is TopicKind.GROUP_MESSAGE
    name = "MessageSent" if message else "IdentityUpdateCreated"
    topic = keccak256(f"{name}(bytes32,bytes,uint64)".encode())
    contract = address or (MESSAGES if message else UPDATES)
    values = (event.identifier, event.payload, event.sequence_id)
    return {
        "address": "0x" + contract.hex(),
        "topics": ["0x" + topic.hex()],
        "data": hexed(["bytes32", "bytes", "uint64"], *values),
        "blockNumber": hex(MINED_IN),
        "blockHash": "0x" + block_hash(MINED_IN).hex(),
        "transactionHash": "0x" + HASH.hex(),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
    }


def calldata(event: PayloadEvent) -> bytes:
    message = event.kind is TopicKind.GROUP_MESSAGE
    signature = b"addMessage(bytes32,bytes)" if message else b"addIdentityUpdate(bytes32,bytes)"
    arguments = eth_abi.encode(["bytes32", "bytes"], [event.identifier, event.payload])
    return keccak256(signature)[:4] + arguments


@dataclass
class Transaction:
    """The only transaction of the chain; by default a direct call that emits what it was given."""

    events: Sequence[PayloadEvent] = field(default_factory=lambda: [HONEST])
    to: bytes = MESSAGES
    input: bytes | None = None
    succeeded: bool = True
    log_address: bytes | None = None

    def endpoint_answers(self) -> dict[str, Any]:
        data = calldata(self.events[0]) if self.input is None else self.input
        logs = [event_log(event, self.log_address) for event in self.events]
        receipt = {
            "transactionHash": "0x" + HASH.hex(),
            "status": "0x1" if self.succeeded else "0x0",
            "to": "0x" + self.to.hex(),
            "blockNumber": hex(MINED_IN),
            "blockHash": "0x" + block_hash(MINED_IN).hex(),
            "logs": logs if self.succeeded else [],
        }
        known = "0x" + HASH.hex()
        return {
            "eth_getTransactionReceipt": lambda hash_: receipt if hash_ == known else None,
            "eth_getTransactionByHash": lambda hash_: (
                {"input": "0x" + data.hex()} if hash_ == known else None
            ),
        }


def served(
    event: PayloadEvent, time: int = TIME, hash_: bytes = HASH, key: SigningKey = NODE
) -> bytes:
    return sign_originator_envelope(unsigned_originator_envelope(event, time), hash_, key)


def judged(
    *envelopes: bytes, transaction: Transaction | None = None, node_id: int = 100, height: int = 20
) -> ReportVerdict:
    transaction = transaction or Transaction()
    endpoint = FakeProvider(FakeRegistry().answers() | transaction.endpoint_answers()).endpoint()
    report = sign_inconsistency_report(node_id, envelopes, 123, AUDITOR)
    return verify_report(report, endpoint, RECORD, block(height))


def only(result: ReportVerdict) -> tuple[Verdict, str]:
    (envelope,) = result.envelopes
    assert result.verdict == envelope.verdict
    return envelope.verdict, envelope.reason
