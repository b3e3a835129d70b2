"""A server that replays an anvil's chain as a chain of the OP stack would have it.

Each block begins with the deposit that tells of layer 1. Payloads come in deposits that layer 1
forced in, with and without a mint, or in signed transactions, whose receipts have the fees of layer
1. The chain goes through the hard forks: at first the first deposit is a system transaction,
since Regolith receipts of deposits have a nonce, and since Canyon their root commits to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle

from chainkit.signatures import keccak256
from support.chains.chain import LocalChain
from support.chains.replayed_chain import (
    DEPOSIT,
    Answer,
    Replayed,
    ReplayedChain,
    Sent,
    encoded_fields,
    number_of,
)

_DEPOSITOR = "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001"
_L1_BLOCK = "0x4200000000000000000000000000000000000015"
_MESSAGE_PASSER_ROOT = "0x" + "1a" * 32
"""Since Isthmus it stands where layer 1 has the root of withdrawals."""
_FEES_OF_LAYER_1: Answer = {
    "l1GasPrice": "0x3b9aca07",
    "l1GasUsed": "0x640",
    "l1Fee": "0x5208",
    "l1BaseFeeScalar": "0x146b",
    "l1BlobBaseFee": "0x1",
    "l1BlobBaseFeeScalar": "0xf79c5",
}


class OptimismChain(ReplayedChain):
    """A third of the blocks since the deployment is of each era; use it as ReplayedChain."""

    def __init__(self, chain: LocalChain) -> None:
        first, end = chain.record.group_messages.block, chain.head().number + 1
        self._regolith, self._canyon = (first + (end - first) * n // 3 for n in (1, 2))
        self._mints = cycle((hex(2**70), None, "signed"))
        super().__init__(chain)

    def transactions_of(self, number: int, sent: Sequence[Sent]) -> Iterator[Replayed]:
        told = {"from": _DEPOSITOR, "to": _L1_BLOCK, "gas": "0xf4240", "value": "0x0"}
        told |= {"input": "0x3db6be2b" + "00" * 160, "nonce": hex(number - 1)}
        is_system = number < self._regolith
        yield self._deposit(number, told, None, is_system=is_system)
        for each in sent:
            mint = next(self._mints) if each.is_payload else "signed"
            if mint == "signed":
                yield Replayed(each.answer, each.encoded, each, _FEES_OF_LAYER_1)
            else:
                yield self._deposit(number, each.answer, mint, each)

    def header_of(self, block: Answer) -> Answer:
        return block | {"withdrawalsRoot": _MESSAGE_PASSER_ROOT}

    def _deposit(
        self,
        number: int,
        told: Answer,
        mint: str | None,
        sent: Sent | None = None,
        *,
        is_system: bool = False,
    ) -> Replayed:
        answer = {name: told[name] for name in ("from", "to", "gas", "value", "input")}
        source = keccak256(bytes(32) + number.to_bytes(32, "big") + bytes([sent is None]))
        answer |= {"type": hex(DEPOSIT), "sourceHash": "0x" + source.hex(), "gasPrice": "0x0"}
        answer |= dict.fromkeys(("nonce", "v", "r", "s"), "0x0")
        # Endpoints answer neither a mint of nothing nor that a transaction is no system's.
        answer |= {"mint": mint} if mint else {}
        answer |= {"isSystemTx": True} if is_system else {}
        in_receipt: Answer = {"effectiveGasPrice": "0x0"}
        if number >= self._regolith:
            in_receipt |= {"depositNonce": told["nonce"]}
            answer |= {"nonce": told["nonce"]}
        if number >= self._canyon:
            in_receipt |= {"depositReceiptVersion": "0x1"}
            answer |= {"depositReceiptVersion": "0x1"}
        numbers = (number_of(each) for each in (mint, told["value"], told["gas"]))
        called = (source, *(told[name] for name in ("from", "to")))
        values = [*called, *numbers, int(is_system), told["input"]]
        return Replayed(answer, encoded_fields(DEPOSIT, values), sent, in_receipt)
