"""A council that acts, also by other tools than this package, and the trail of its acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chainkit.chain import Endpoint
from chainkit.council.calls import Call
from chainkit.council.log.proposals import KeptProposals
from chainkit.council.log.trail import Trail, read_trail
from chainkit.council.proposal import Evidence, Proposal, SafeSettings
from chainkit.council.proposal.drafting import Terms, draft
from chainkit.council.safe import InnerCall, SafeTransaction, pack
from chainkit.signatures import SigningKey
from chainkit.types import Log
from support.chains.chain import calldata_of, dev_secret
from support.command_line import Outcome, run
from support.council.scene import OWNER_NUMBERS, PAYER, REASON, CouncilScene

EVIDENCE = Evidence("node-100", "ab" * 32)
RELAY = bytes(19) + b"\xe1"
_RELAY_CODE = "0x602036038060206000376000600082600060006000355af1601e575f5ffd5b00"
"""Calls the address in the first word of its calldata with all that follows."""


def run_log(scene: CouncilScene, *options: object) -> Outcome:
    return run("council", "log", *scene.rpc, *scene.files, *options)


def flat(outcome: Outcome) -> str:
    """Return what was printed with single spaces: lines are wrapped anywhere."""
    return " ".join(outcome.out.split())


def trail_of(scene: CouncilScene, first: int, *options: object) -> dict[str, Any]:
    """Return the trail from a height on, as a script reads it."""
    outcome = run_log(scene, "--from-block", first, "--json", *options)
    assert outcome.code in (0, 1), outcome.err
    content: dict[str, Any] = outcome.content
    assert content["clean"] is (outcome.code == 0)
    return content


def next_block(scene: CouncilScene) -> int:
    return scene.endpoint.head().number + 1


def proposed(scene: CouncilScene, *calls: Call, days: int = 7) -> Proposal:
    """Draft a proposal that rests on evidence."""
    head = scene.endpoint.head()
    terms = Terms(REASON, (EVIDENCE,), days, None)
    return draft(scene.account(head), scene.record, head, calls, terms)


def executed(scene: CouncilScene, proposal: Proposal) -> bytes:
    """Send what was signed, a Safe's by PAYER; return the transaction's hash."""
    signatures, transaction = list(proposal.signatures.values()), proposal.transaction
    if isinstance(transaction, SafeTransaction):
        return send_execution(
            scene, transaction, transaction.exec_calldata(pack(proposal.hash, signatures))
        )
    return scene.chain.send_raw(transaction.raw(signatures[0]))


def safe_transaction(scene: CouncilScene, *calls: InnerCall, **changes: Any) -> SafeTransaction:
    """Return what any tool could let the owners sign."""
    transaction = SafeTransaction.of_calls(
        chain_id=scene.council.chain_id,
        safe=scene.council.account,
        nonce=scene.state().ask("Safe", scene.council.account, "nonce"),
        calls=calls,
        multi_send=safe_of(scene).multi_send,
    )
    return replace(transaction, **changes)


def safe_of(scene: CouncilScene) -> SafeSettings:
    assert scene.council.safe is not None
    return scene.council.safe


def signature(owner: int, hash_: bytes) -> bytes:
    signed = SigningKey(dev_secret(OWNER_NUMBERS[owner])).sign(hash_)
    return signed[:64] + bytes([signed[64] + 27])


def exec_calldata(transaction: SafeTransaction, owners: Sequence[int] = (0, 1)) -> bytes:
    signatures = [signature(owner, transaction.hash) for owner in owners]
    return transaction.exec_calldata(pack(transaction.hash, signatures))


def send_execution(
    scene: CouncilScene, transaction: SafeTransaction, calldata: bytes = b""
) -> bytes:
    """Let PAYER execute a transaction, signed by the first two owners; return its hash."""
    data = calldata or exec_calldata(transaction)
    return sent(scene, scene.council.account, data, PAYER)


def relayed(scene: CouncilScene, data: bytes) -> bytes:
    """Execute through another contract."""
    scene.chain.anvil.request("anvil_setCode", "0x" + RELAY.hex(), _RELAY_CODE)
    return sent(scene, RELAY, scene.council.account.rjust(32, b"\0") + data, PAYER)


def sent(scene: CouncilScene, to: bytes, data: bytes, sender: int) -> bytes:
    transaction = scene.chain.send(to, data, sender)
    receipt = scene.endpoint.receipt(transaction)
    assert receipt is not None and receipt["status"] == "0x1", receipt
    return transaction


def to_safe(scene: CouncilScene, signature: str, *arguments: object) -> InnerCall:
    """Return a call of the Safe by itself, such as of ``enableModule(address)``."""
    return InnerCall(scene.council.account, calldata_of(signature, *arguments))


class HidingEndpoint(Endpoint):
    """Leaves logs out of ranges, as an endpoint that lags does, or one that lies."""

    hidden: Callable[[Log], bool]
    on_transaction: Callable[[], None]

    @classmethod
    def of(
        cls,
        scene: CouncilScene,
        hidden: Callable[[Log], bool] = lambda log: False,
        on_transaction: Callable[[], None] = lambda: None,
    ) -> HidingEndpoint:
        endpoint = cls.connect(scene.chain.url)
        endpoint.hidden, endpoint.on_transaction = hidden, on_transaction
        return endpoint

    def logs(self, *arguments: Any, **options: Any) -> list[Log]:
        return [log for log in super().logs(*arguments, **options) if not self.hidden(log)]

    def transaction(self, transaction_hash: bytes) -> dict[str, Any] | None:
        found = super().transaction(transaction_hash)
        self.on_transaction()
        return found

    def trail(self, scene: CouncilScene, first: int) -> Trail:
        head = scene.endpoint.head().reference
        return read_trail(self, scene.record, scene.council, KeptProposals(), first, head)
