"""Keys that sign: the right bytes, doubt of every wallet, and no secret in any word."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.signing import (
    PRIVATE_KEY_VARIABLE,
    KeySigner,
    has_environment_key,
    recover_signer,
    sign_transaction,
    sign_typed_data,
    take_environment_key,
)
from chainkit.council.signing.hashes import (
    decode_transaction,
    encode_transaction,
    transaction_digest,
    typed_data_digest,
)
from chainkit.errors import ChainkitError, ConfigurationError, InvalidSignature, MalformedData
from chainkit.signatures import SECP256K1_ORDER
from support.council.signers import FIELDS, TYPED_DATA, FaultyWallet

SECRET = bytes(range(1, 33))
OTHER_SECRET = bytes(range(2, 34))
SIGNER = KeySigner("keystore", SECRET)
DIGEST = typed_data_digest(TYPED_DATA)

secrets = st.integers(1, SECP256K1_ORDER - 1).map(lambda number: number.to_bytes(32, "big"))
small = st.integers(0, 2**64 - 1)


def other_message() -> dict[str, Any]:
    return TYPED_DATA | {"message": TYPED_DATA["message"] | {"nonce": 8}}


def malleable(signature: bytes) -> bytes:
    """The other signature of the same key over the same hash, with a high S."""
    high = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + high.to_bytes(32, "big") + bytes([55 - signature[64]])


def resigned(fields: dict[str, Any], secret: bytes) -> bytes:
    return KeySigner("another", secret).sign_transaction(fields)


def everything_said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


# ------------------------------------------------------------------ the same as others sign


@given(secrets, st.integers(0, 2**256 - 1))
def test_sign_typed_data__any_key_and_message__equals_eth_account(
    secret: bytes, nonce: int
) -> None:
    data = TYPED_DATA | {"message": TYPED_DATA["message"] | {"nonce": nonce}}
    expected = Account.sign_message(encode_typed_data(full_message=data), secret)

    signer = KeySigner("keystore", secret)

    assert sign_typed_data(signer, data, typed_data_digest(data)) == bytes(expected.signature)
    assert typed_data_digest(data) == bytes(expected.message_hash)


@given(secrets, st.binary(max_size=100), small, small, st.integers(0, 2**200))
def test_sign_transaction__any_key_and_fields__equals_eth_account(
    secret: bytes, data: bytes, nonce: int, gas: int, fee: int
) -> None:
    fees = {"maxFeePerGas": fee, "maxPriorityFeePerGas": fee // 2}
    fields = FIELDS | {"data": data, "nonce": nonce, "gas": gas} | fees
    expected = Account.sign_transaction(fields, secret)

    raw = sign_transaction(KeySigner("keystore", secret), fields)

    assert raw == bytes(expected.raw_transaction)
    digest, signature = decode_transaction(raw)
    assert digest == transaction_digest(fields)
    assert recover_signer(digest, signature) == Account.from_key(secret).address


def test_sign_transaction__that_deploys__equals_eth_account() -> None:
    fields = {name: value for name, value in FIELDS.items() if name != "to"}

    raw = sign_transaction(SIGNER, fields)

    assert raw == bytes(Account.sign_transaction(fields, SECRET).raw_transaction)


def test_sign__address_and_label__are_the_keys() -> None:
    assert (SIGNER.address, SIGNER.label) == (Account.from_key(SECRET).address, "keystore")


# ------------------------------------------------------------------ wallets with a fault


def test_sign_typed_data__hash_that_the_caller_knows_is_another__asks_no_wallet() -> None:
    def refuse(_: Any) -> Any:
        raise AssertionError("asked")

    with pytest.raises(MalformedData, match="hash of the typed data"):
        sign_typed_data(FaultyWallet(SIGNER, before=refuse), other_message(), DIGEST)


def test_sign_typed_data__v_0_or_1__is_taken_as_27_or_28() -> None:
    wallet = FaultyWallet(SIGNER, after=lambda signed: signed[:-1] + bytes([signed[-1] - 27]))

    assert sign_typed_data(wallet, TYPED_DATA, DIGEST) == SIGNER.sign_typed_data(TYPED_DATA)


@pytest.mark.parametrize(
    ("wallet", "words"),
    [
        (FaultyWallet(SIGNER, before=lambda _: other_message()), "of wallet: expected of 0x"),
        (
            FaultyWallet(
                SIGNER,
                after=lambda _: KeySigner("another", OTHER_SECRET).sign_typed_data(TYPED_DATA),
            ),
            f"expected of {SIGNER.address}, got of {Account.from_key(OTHER_SECRET).address}",
        ),
        (FaultyWallet(SIGNER, after=malleable), "S in the lower half"),
        (FaultyWallet(SIGNER, after=lambda signed: signed[:-1]), "expected 65 bytes, got 64"),
        (FaultyWallet(SIGNER, after=lambda signed: signed + b"\0"), "expected 65 bytes, got 66"),
        (FaultyWallet(SIGNER, after=lambda signed: b""), "expected 65 bytes, got 0"),
        (
            FaultyWallet(SIGNER, after=lambda signed: signed[:-1] + bytes([signed[-1] + 4])),
            "expected V 27 or 28, got V 3",
        ),
        (FaultyWallet(SIGNER, after=lambda _: bytes(64) + b"\x1b"), "a recoverable public key"),
    ],
)
def test_sign_typed_data__wallet_with_a_fault__is_noticed(wallet: FaultyWallet, words: str) -> None:
    with pytest.raises(InvalidSignature) as caught:
        sign_typed_data(wallet, TYPED_DATA, DIGEST)

    assert words in str(caught.value)


CHANGES: dict[str, Any] = {
    "chainId": 1,
    "nonce": 4,
    "to": b"\x34" * 20,
    "value": 1,
    "data": b"\x01\x02\x03\x05",
    "gas": 50_001,
    "maxPriorityFeePerGas": 10**9 + 1,
    "maxFeePerGas": 10**10 + 1,
}


@pytest.mark.parametrize("name", CHANGES)
def test_sign_transaction__wallet_changes_a_field__is_noticed(name: str) -> None:
    wallet = FaultyWallet(SIGNER, before=lambda fields: fields | {name: CHANGES[name]})

    with pytest.raises(InvalidSignature, match="got another one's"):
        sign_transaction(wallet, FIELDS)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (lambda _: resigned(FIELDS, OTHER_SECRET), "signed transaction of wallet"),
        (lambda raw: raw[:-1], "an EIP-1559 envelope"),
        (lambda raw: raw + b"\0", "an EIP-1559 envelope"),
        (lambda raw: b"\x01" + raw[1:], "an EIP-1559 envelope"),
        (lambda raw: b"", "an EIP-1559 envelope"),
        (lambda raw: b"\x02\x80", "an EIP-1559 envelope"),
        (lambda raw: b"\x02\xc0", "an EIP-1559 envelope"),
        (lambda raw: encode_transaction(FIELDS, bytes(64) + b"\x02"), "a signature in it"),
        (lambda raw: encode_transaction(FIELDS, bytes(64) + b"\x00"), "a recoverable public key"),
    ],
)
def test_sign_transaction__wallet_returns_other_bytes__is_noticed(
    after: Callable[[bytes], bytes], words: str
) -> None:
    with pytest.raises(InvalidSignature) as caught:
        sign_transaction(FaultyWallet(SIGNER, after=after), FIELDS)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"types": {}},
        TYPED_DATA | {"primaryType": "Nothing"},
        TYPED_DATA | {"message": None},
        TYPED_DATA | {"message": TYPED_DATA["message"] | {"nonce": -1}},
        TYPED_DATA | {"message": TYPED_DATA["message"] | {"to": "somebody"}},
        TYPED_DATA | {"domain": {"chainId": 31337}},
    ],
    ids=["empty", "types", "another type", "no message", "negative", "no address", "domain"],
)
def test_hash__content_that_is_no_typed_data__is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(MalformedData, match="typed data"):
        typed_data_digest(content)


# ------------------------------------------------------------------ nothing secret is said


def test_show__signer__is_its_label_and_address() -> None:
    assert repr(SIGNER) == str(SIGNER) == f"KeySigner(keystore, {SIGNER.address})"


def test_take_apart__signer__gives_no_secret() -> None:
    assert not hasattr(SIGNER, "__dict__")
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError) as caught:
            attempt(SIGNER)
        assert SECRET.hex() not in everything_said(caught.value)


@pytest.mark.parametrize("secret", [b"", bytes(32), b"\xff" * 32, SECRET + b"\x01"])
def test_make_signer__no_scalar_of_the_curve__is_refused_without_showing_it(
    secret: bytes,
) -> None:
    with pytest.raises(InvalidSignature) as caught:
        KeySigner("keystore", secret)

    assert not secret or secret.hex() not in everything_said(caught.value)


@pytest.mark.parametrize("chain_id", [31337, 1337])
@pytest.mark.parametrize("text", [SECRET.hex(), f"0x{SECRET.hex()}", f" 0x{SECRET.hex()}\n"])
def test_take_key__of_the_environment_on_a_local_chain__signs_and_is_gone(
    monkeypatch: pytest.MonkeyPatch, chain_id: int, text: str
) -> None:
    monkeypatch.setenv(PRIVATE_KEY_VARIABLE, text)

    signer = take_environment_key(chain_id)

    assert signer.address == SIGNER.address
    assert not has_environment_key()
    assert SECRET.hex() not in repr(signer)


@pytest.mark.parametrize("chain_id", [1, 10, 100, 11155111, 31338])
def test_take_key__of_the_environment_on_another_chain__is_refused_and_gone(
    monkeypatch: pytest.MonkeyPatch, chain_id: int
) -> None:
    monkeypatch.setenv(PRIVATE_KEY_VARIABLE, SECRET.hex())

    with pytest.raises(ConfigurationError) as caught:
        take_environment_key(chain_id)

    assert f"got chain id {chain_id}: use --keystore FILE" in str(caught.value)
    assert SECRET.hex() not in everything_said(caught.value)
    assert not has_environment_key()


@pytest.mark.parametrize(
    "text", ["", "hush", SECRET.hex()[1:], SECRET.hex() + "0", "00" * 32, "ff" * 32, "0x0x"]
)
def test_take_key__text_that_is_no_key__is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(PRIVATE_KEY_VARIABLE, text)

    with pytest.raises(ChainkitError) as caught:
        take_environment_key(31337)

    assert "expected 0x and 64 hex digits of a key, got other text" in str(caught.value)
    assert not text or text not in everything_said(caught.value)
