"""Costs of a message in each of XIP-49 §2.1.3's variants, to the gas.

The formulas are the EVM's own prices (Yellow Paper, EIP-2028, 2929, 3529, 3860) and, per contract,
one number for the rest of its code. The formulas are for the contracts of
``tools/gas_study/solidity`` as compiled for deployment, called directly from an account:
``docs/gas.json`` has measured gas, and the formulas give each of its cells. ``docs/cost.md``
derives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from chainkit.signatures import keccak256
from chainkit.types import PayloadEvent, TopicKind

RULES: Final = ("cancun", "prague")
"""Hardforks that differ in these prices. From Prague on, EIP-7623 sets a floor for calldata."""

TRANSACTION_GAS_CAP: Final = 16_777_216
"""Most gas that one transaction may ask for from Osaka on (EIP-7825)."""

FRESH_SLOT: Final = 17_100
"""Extra gas of the counter's first write: 20,000 + 2,100 - 2,900 - 2,100."""

CODE_CHUNK: Final = 24_575
"""Bytes of a message in one contract's code: EIP-170's limit, less a leading STOP."""

_WORD: Final = 32
_INTRINSIC: Final = 21_000
_FLOOR_PER_TOKEN: Final = 10
_LOG: Final = 375
_LOG_BYTE: Final = 8
_COPY_WORD: Final = 3
_NEW_SLOT: Final = 22_100
_ZERO_SLOT: Final = 2_200
"""Writing zero to a slot that was never touched: 2,100 + 100."""
_CREATE: Final = 32_000
_CODE_BYTE: Final = 200
_INIT_CODE_WORD: Final = 2
_INIT_CODE: Final = 12
"""Bytes before the data in the code that creates a chunk."""
_CACHED: Final = 65_536

_SELECTORS: Final = {
    TopicKind.GROUP_MESSAGE: keccak256(b"addMessage(bytes32,bytes)")[:4],
    TopicKind.IDENTITY_UPDATE: keccak256(b"addIdentityUpdate(bytes32,bytes)")[:4],
}


def words(size: int) -> int:
    """Return how many words of 32 bytes hold ``size`` bytes."""
    return -(-size // _WORD)


def memory_gas(size: int) -> int:
    """Return what memory of ``size`` words costs in all."""
    return 3 * size + size * size // 512


def calldata_tokens(selector: bytes, identifier: bytes, payload: bytes) -> int:
    """Return the tokens of EIP-7623 in a call ``f(bytes32,bytes)``: 1 a zero byte, 4 another.

    A token costs 4 gas as calldata, and 10 under the floor.
    """
    head = selector + identifier + (2 * _WORD).to_bytes(_WORD) + len(payload).to_bytes(_WORD)
    zeros = head.count(0) + payload.count(0)
    padding = words(len(payload)) * _WORD - len(payload)
    return padding + zeros + 4 * (len(head) + len(payload) - zeros)


def _log_gas(size: int) -> int:
    # One topic; group, offset, sequence id, length, and the payload in whole words.
    return 2 * _LOG + _LOG_BYTE * _WORD * (4 + words(size))


def _complete_event(size: int) -> int:
    whole = words(size)
    return 5_800 + _log_gas(size) + _COPY_WORD * whole + memory_gas(whole + 9)


def _proxied(overhead: int, size: int) -> int:
    # The proxy copies the calldata into its own memory, and passes it on.
    whole = words(size)
    copied = 2 * _COPY_WORD * whole + memory_gas(whole + 10) + memory_gas(whole + 4)
    return overhead + _log_gas(size) + copied


def _stored_message(size: int) -> int:
    if size < _WORD:
        # Short bytes are in one slot, together with their length; none writes a zero.
        return 28_057 if size else 8_143
    partial = size % _WORD > 0
    return 28_110 + _NEW_SLOT * words(size) + 85 * (size // _WORD) + 44 * partial


def _stored_code(size: int) -> int:
    if size == 0:
        return 5_615
    gas, memory = 27_516, 7 * _WORD
    for start in range(0, size, CODE_CHUNK):
        chunk = min(CODE_CHUNK, size - start)
        gas += 1_075 + _CREATE + _NEW_SLOT + _CODE_BYTE * (chunk + 1)
        gas += _INIT_CODE_WORD * words(_INIT_CODE + chunk) + _COPY_WORD * words(chunk)
        gas += _COPY_WORD * words(chunk + 1) + memory_gas(words(chunk + 1))
        # Memory is never given back, and Solidity does not align what bytes.concat returns.
        highest = memory + _WORD + _INIT_CODE + chunk
        memory = highest + 2 * _WORD
    return gas + memory_gas(words(highest))


_WHOLE: Final[Mapping[str, Callable[[int], int]]] = {
    "complete-event": _complete_event,
    "complete": lambda _: 5_484,
    "stored-message": _stored_message,
    "stored-code": _stored_code,
}
"""Variants that are called with the message: gas besides the transaction and its calldata."""

_HASHED: Final[Mapping[str, int]] = {"hash": 5_484, "hash-event": 7_272, "stored-hash": 27_743}
"""Variants that are called with the message's hash, 32 bytes: their gas is the same for all
messages."""

_OURS: Final = {TopicKind.GROUP_MESSAGE: 16_294, TopicKind.IDENTITY_UPDATE: 16_280}

VARIANTS: Final = (
    "complete-event",
    "complete",
    "hash",
    "hash-event",
    "stored-hash",
    "stored-message",
    "stored-code",
    "ours",
)
"""XIP-49 §2.1.3's four, the ways to store in the sense of the EVM, and our own contracts, called
straight, which show how well the formulas meet what was paid. Names as in docs/gas.json."""


def column(variant: str, what: str) -> str:
    """Return the name of a variant's column; ``what`` is one of RULES, or ``capped``."""
    return f"{variant.replace('-', '_')}_{what}"


VARIANT_COLUMNS: Final = tuple(
    column(variant, what) for variant in VARIANTS for what in (*RULES, "capped")
)
"""Per variant: gas by rules, and how many messages need more than TRANSACTION_GAS_CAP."""


def variant_gas(event: PayloadEvent) -> dict[str, int]:
    """Return the cost of a message in each variant, as VARIANT_COLUMNS names it.

    Each variant is a transaction of its own to the contract itself. The message with the sequence
    id 1 pays for the counter's fresh slot.
    """
    first = FRESH_SLOT if event.sequence_id == 1 else 0
    post, payload = _SELECTORS[TopicKind.GROUP_MESSAGE], event.payload
    whole = calldata_tokens(post, event.identifier, payload)
    hashed = calldata_tokens(post, event.identifier, keccak256(payload))
    own = calldata_tokens(_SELECTORS[event.kind], event.identifier, payload)
    costs: dict[str, int] = {}
    for variant, formula in _WHOLE.items():
        execution = _executed(formula, len(payload))
        if variant == "stored-message":
            execution -= _zero_words(payload) * (_NEW_SLOT - _ZERO_SLOT)
        costs |= _priced(variant, whole, execution + first)
    for variant, execution in _HASHED.items():
        costs |= _priced(variant, hashed, execution + first)
    return costs | _priced("ours", own, _proxied(_OURS[event.kind], len(payload)) + first)


@lru_cache(_CACHED)
def _executed(formula: Callable[[int], int], size: int) -> int:
    return formula(size)


def _priced(variant: str, tokens: int, execution: int) -> dict[str, int]:
    gas = _INTRINSIC + 4 * tokens + execution
    floored = max(gas, _INTRINSIC + _FLOOR_PER_TOKEN * tokens)
    return {
        column(variant, "cancun"): gas,
        column(variant, "prague"): floored,
        column(variant, "capped"): int(floored > TRANSACTION_GAS_CAP),
    }


def _zero_words(payload: bytes) -> int:
    """Return the words of storage that a payload fills with zeros alone."""
    if len(payload) < _WORD or 0 not in payload:
        return 0
    starts = range(0, len(payload), _WORD)
    return sum(not any(payload[start : start + _WORD]) for start in starts)
