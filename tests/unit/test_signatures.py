import copy
import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature
from chainkit.signatures import (
    SECP256K1_ORDER,
    SigningKey,
    address_of,
    is_valid_public_key,
    keccak256,
    recover_public_key,
)
from support.vectors import case_name, from_hex, load

SIGNED = load("envelopes")["cases"] + load("misbehavior_reports")["cases"]
KEYS = load("public_keys")["keys"]
# anvil's development account 0: published with its address.
SECRET = from_hex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

secrets = st.integers(1, SECP256K1_ORDER - 1).map(lambda scalar: scalar.to_bytes(32, "big"))
digests = st.binary(min_size=32, max_size=32)


def signature_of(r: int, s: int, v: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v])


def parts_of(signature: bytes) -> tuple[int, int, int]:
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    return r, s, signature[64]


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
    ],
)
def test_hash__published_input__gives_the_published_keccak256(data: bytes, digest: str) -> None:
    assert keccak256(data).hex() == digest


@pytest.mark.parametrize("case", SIGNED, ids=case_name)
def test_sign__digest_of_a_vector__gives_the_same_bytes(case: dict[str, Any]) -> None:
    key = SigningKey(from_hex(case["private_key"]))

    assert key.public_key == from_hex(case["public_key"])
    assert key.sign(from_hex(case["digest"])) == from_hex(case["signature"])


@pytest.mark.parametrize("case", SIGNED, ids=case_name)
def test_recover__signature_of_a_vector__gives_its_public_key(case: dict[str, Any]) -> None:
    recovered = recover_public_key(from_hex(case["signature"]), from_hex(case["digest"]))

    assert recovered == from_hex(case["public_key"])


@given(secrets, digests)
def test_recover__what_a_key_signed__gives_its_public_key(secret: bytes, digest: bytes) -> None:
    key = SigningKey(secret)
    signature = key.sign(digest)

    _, s, v = parts_of(signature)
    assert v in (0, 1)
    assert 0 < s <= SECP256K1_ORDER // 2
    assert recover_public_key(signature, digest) == key.public_key
    assert key.sign(digest) == signature


@given(secrets, digests)
def test_recover__high_s_twin_of_a_signature__is_refused(secret: bytes, digest: bytes) -> None:
    r, s, v = parts_of(SigningKey(secret).sign(digest))

    with pytest.raises(InvalidSignature, match="a high S"):
        recover_public_key(signature_of(r, SECP256K1_ORDER - s, 1 - v), digest)


@given(secrets, digests, st.integers(0, 255))
def test_recover__another_digest__gives_another_key_or_fails(
    secret: bytes, digest: bytes, bit: int
) -> None:
    key = SigningKey(secret)
    other = (int.from_bytes(digest, "big") ^ (1 << bit)).to_bytes(32, "big")

    with suppress(InvalidSignature):
        assert recover_public_key(key.sign(digest), other) != key.public_key


@given(st.binary(max_size=130), st.binary(max_size=64))
def test_recover__arbitrary_bytes__gives_a_point_or_fails(signature: bytes, digest: bytes) -> None:
    with suppress(InvalidSignature):
        assert is_valid_public_key(recover_public_key(signature, digest))


@given(st.binary(min_size=64, max_size=64), st.integers(0, 255), digests)
def test_recover__arbitrary_signature__gives_a_point_or_fails(
    r_and_s: bytes, v: int, digest: bytes
) -> None:
    with suppress(InvalidSignature):
        assert is_valid_public_key(recover_public_key(r_and_s + bytes([v]), digest))


@pytest.mark.parametrize("length", [0, 64, 66])
def test_recover__wrong_length__says_the_length(length: int) -> None:
    with pytest.raises(InvalidSignature, match=f"expected 65 bytes, got {length} bytes"):
        recover_public_key(bytes(length), bytes(32))


@pytest.mark.parametrize("v", [2, 3, 27, 28, 255])
def test_recover__v_of_another_convention__is_refused(v: int) -> None:
    signature = SigningKey(SECRET).sign(bytes(32))

    with pytest.raises(InvalidSignature, match=rf"expected V in {{0, 1}}, got V {v}"):
        recover_public_key(signature[:64] + bytes([v]), bytes(32))


@pytest.mark.parametrize(
    ("r", "s"),
    [(0, 1), (1, 0), (SECP256K1_ORDER, 1), (2**256 - 1, 1), (5, 1)],
    ids=["r 0", "s 0", "r is the order", "r 2^256-1", "r no coordinate of the curve"],
)
def test_recover__no_point_for_these_scalars__is_refused(r: int, s: int) -> None:
    with pytest.raises(InvalidSignature, match="a recoverable public key"):
        recover_public_key(signature_of(r, s, 0), bytes(32))


@pytest.mark.parametrize("case", KEYS, ids=case_name)
def test_check_public_key__of_a_vector__agrees_with_the_curve_equation(
    case: dict[str, Any],
) -> None:
    assert is_valid_public_key(from_hex(case["key"])) == case["valid"]


def test_address__of_a_published_key__is_the_published_one() -> None:
    assert address_of(SigningKey(SECRET).public_key) == ADDRESS


@pytest.mark.parametrize(
    "secret",
    [b"", bytes(31) + b"\1" + b"\1", b"\1" * 31, bytes(32), SECP256K1_ORDER.to_bytes(32, "big")],
    ids=["empty", "33 bytes", "31 bytes", "zero", "the order"],
)
def test_make_key__no_scalar_of_the_curve__is_refused_without_showing_it(secret: bytes) -> None:
    with pytest.raises(InvalidSignature) as caught:
        SigningKey(secret)

    assert str(caught.value) == (
        f"private key: expected 32 bytes below the order of secp256k1, got {len(secret)} bytes"
    )


def test_print__key__shows_the_address_only() -> None:
    key = SigningKey(SECRET)

    assert repr(key) == str(key) == f"{key}" == f"SigningKey(address={ADDRESS})"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle__key__is_refused(protocol: int) -> None:
    with pytest.raises(TypeError, match="does not leave the process"):
        pickle.dumps(SigningKey(SECRET), protocol)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copy__key__is_refused(duplicate: Any) -> None:
    with pytest.raises(TypeError, match="does not leave the process"):
        duplicate(SigningKey(SECRET))
