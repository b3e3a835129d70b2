"""A server that replays an anvil's chain as a chain of Arbitrum Nitro would have it.

Each block begins with an internal transaction. Payloads come in unsigned, contract and retry
transactions, as layer 1 and ArbOS send them, or in signed ones; beside them stand deposits,
submissions of retryables and other retries. Headers end with the base fee, and several blocks have
one timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, cycle

from support.chains.chain import LocalChain
from support.chains.replayed_chain import (
    Answer,
    Replayed,
    ReplayedChain,
    Sent,
    encoded_fields,
    number_of,
)

SECONDS_WITH_ONE_TIME = 10
_AFTER_LONDON = (
    *("withdrawals", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot"),
    *("requestsHash", "totalDifficulty"),
)
_NITRO: Answer = {"l1BlockNumber": "0x7", "sendCount": "0x0", "sendRoot": "0x" + "00" * 32}
_IN_RECEIPT: Answer = {"gasUsedForL1": "0x0"}
_ARBOS = "0x00000000000000000000000000000000000a4b05"

_FIELDS: Mapping[int, str] = {
    0x64: "chainId requestId from to value",
    0x65: "chainId from nonce maxFeePerGas gas to value input",
    0x66: "chainId requestId from maxFeePerGas gas to value input",
    0x68: "chainId nonce from maxFeePerGas gas to value input"
    " ticketId refundTo maxRefund submissionFeeRefund",
    0x69: "chainId requestId from l1BaseFee depositValue maxFeePerGas gas retryTo retryValue"
    " beneficiary maxSubmissionFee refundTo retryData",
    0x6A: "chainId input",
}
"""Type to the fields of its RLP (go-ethereum of Nitro, core/types/arb_types.go)."""
_BYTES = frozenset(
    {"requestId", "from", "to", "input", "ticketId", "refundTo", "retryTo", "beneficiary"}
    | {"retryData"}
)
_OF_LAYER_1: Answer = {
    "refundTo": "0x" + "0c" * 20,
    "maxRefund": "0x3e8",
    "submissionFeeRefund": "0x0",
    "l1BaseFee": "0x64",
    "depositValue": hex(2**70),
    "retryTo": None,
    "retryValue": "0x0",
    "beneficiary": "0x" + "0d" * 20,
    "maxSubmissionFee": "0x258",
    "retryData": "0x01020304",
}


_NUMBERS = count(1)


class NitroChain(ReplayedChain):
    """Ten blocks have one timestamp; use it as ReplayedChain."""

    def __init__(self, chain: LocalChain) -> None:
        self._types = cycle((0x65, 0x66, 0x68, None))
        self._others = cycle((0x68, 0x69, 0x64))
        super().__init__(chain)

    def transactions_of(self, number: int, sent: Sequence[Sent]) -> Iterator[Replayed]:
        told = {"from": _ARBOS, "to": _ARBOS, "input": "0x" + number.to_bytes(36, "big").hex()}
        yield _of_nitro(0x6A, self._nothing() | told)
        for each in sent:
            type_ = next(self._types) if each.is_payload else None
            if type_ is None:
                yield Replayed(each.answer, each.encoded, each, _IN_RECEIPT)
            else:
                yield _of_nitro(type_, each.answer, each)
            if each.is_payload:
                told = {"from": "0x" + "0e" * 20, "to": "0x" + "0f" * 20, "gas": "0x5208"}
                numbers = dict.fromkeys(("nonce", "value"), each.answer["nonce"])
                yield _of_nitro(next(self._others), self._nothing() | told | numbers)

    def header_of(self, block: Answer) -> Answer:
        time = number_of(block["timestamp"])
        header = {name: value for name, value in block.items() if name not in _AFTER_LONDON}
        return header | {"timestamp": hex(time - time % SECONDS_WITH_ONE_TIME)}

    def fields_beside(self) -> Answer:
        return _NITRO

    def _nothing(self) -> Answer:
        zeros = dict.fromkeys(("gas", "gasPrice", "value", "nonce"), "0x0")
        return zeros | {"chainId": hex(self.chain_id), "input": "0x"}


def _of_nitro(type_: int, told: Answer, sent: Sent | None = None) -> Replayed:
    names = _FIELDS[type_].split()
    # Layer 1 numbers its messages: no two transactions are the same.
    numbered = dict.fromkeys(("requestId", "ticketId"), f"0x{next(_NUMBERS):064x}")
    own = {name: text for name, text in (_OF_LAYER_1 | numbered).items() if name in names}
    price = told.get("maxFeePerGas") or told["gasPrice"]
    # The RPC of an unsigned one has its fee cap as gasPrice alone.
    fees = {"gasPrice": price} | ({"maxFeePerGas": price} if type_ != 0x65 else {})
    everything = told | own | fees | {"maxFeePerGas": price}
    values = [everything[name] if name in _BYTES else number_of(everything[name]) for name in names]
    signature = dict.fromkeys(("v", "r", "s"), "0x0")
    common = ("chainId", "from", "to", "gas", "value", "input", "nonce")
    answer = {name: told[name] for name in common} | own | fees | signature
    encoded = encoded_fields(type_, values)
    return Replayed(answer | {"type": hex(type_)}, encoded, sent, _IN_RECEIPT)
