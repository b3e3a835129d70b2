"""Faults in the signature under an envelope that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.audit.faults.content import flipped
from benchmarks.audit.faults.kind import Kind, Served, Window
from benchmarks.audit.faults.wire import envelope, signature_of, signed, unsigned
from chainkit.signatures import MISBEHAVIOR_LABEL, SECP256K1_ORDER, SigningKey, keccak256
from chainkit_jobs.findings import Code

_INVALID: Final = ((Code.SIGNATURE_INVALID, 0),)
_STRANGER: Final = SigningKey(keccak256(b"benchmark stranger"))


def _with(change: Callable[[bytes], bytes]) -> Callable[[Window], list[Served]]:
    def serve(window: Window) -> list[Served]:
        [payload] = window.payloads
        content, transaction_hash = unsigned(payload), payload.transaction_hash
        signature = change(signature_of(window.key, content, transaction_hash))
        return [window.raw(envelope(content, transaction_hash, signature))]

    return serve


def _high_s(signature: bytes) -> bytes:
    """Return the other signature that the same key has for the same digest."""
    s = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes((signature[64] ^ 1,))


def _other_v(signature: bytes) -> bytes:
    return flipped(signature, 64)


def _ethereum_v(signature: bytes) -> bytes:
    return signature[:64] + bytes((signature[64] + 27,))


def _s_bit(signature: bytes) -> bytes:
    return flipped(signature, 63)


def _by(key: SigningKey, window: Window) -> list[Served]:
    [payload] = window.payloads
    return [window.raw(signed(key, unsigned(payload), payload.transaction_hash))]


def _by_another_node(window: Window) -> list[Served]:
    return _by(window.other_key, window)


def _by_a_stranger(window: Window) -> list[Served]:
    return _by(_STRANGER, window)


def _of_another_envelope(window: Window) -> list[Served]:
    first, second = window.payloads
    signature = signature_of(window.key, unsigned(second), second.transaction_hash)
    return [
        window.raw(envelope(unsigned(first), first.transaction_hash, signature)),
        window.honest(1),
    ]


def _under_another_label(window: Window) -> list[Served]:
    [payload] = window.payloads
    content, transaction_hash = unsigned(payload), payload.transaction_hash
    signature = window.key.sign(keccak256(MISBEHAVIOR_LABEL + content + transaction_hash))
    return [window.raw(envelope(content, transaction_hash, signature))]


SIGNATURE: Final = (
    Kind("signature_zeroed", "a signature of zeros", _with(lambda s: bytes(65)), _INVALID),
    Kind("signature_bit", "one bit of the signature", _with(_s_bit), _INVALID),
    Kind("signature_high_s", "a high S, with the V that fits", _with(_high_s), _INVALID),
    Kind("signature_other_v", "the other V", _with(_other_v), _INVALID),
    Kind("signature_ethereum_v", "V as Ethereum writes it", _with(_ethereum_v), _INVALID),
    Kind("signature_short", "64 bytes of signature", _with(lambda s: s[:64]), _INVALID),
    Kind("signature_empty", "a signature without bytes", _with(lambda s: b""), _INVALID),
    Kind("signature_by_another_node", "another node's signature", _by_another_node, _INVALID),
    Kind("signature_by_a_stranger", "a stranger's signature", _by_a_stranger, _INVALID),
    Kind(
        "signature_of_another_envelope",
        "the node's own signature of another envelope",
        _of_another_envelope,
        _INVALID,
        width=2,
    ),
    Kind(
        "signature_under_another_label",
        "the node's signature under another label",
        _under_another_label,
        _INVALID,
    ),
)
