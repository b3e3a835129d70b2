import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.identity.signed import SignatureKind, Signed, check, read_signature
from chainkit.identity.text import SignedText
from chainkit.protocol.proto.identity_associations_pb2 import Signature
from chainkit.signatures import SECP256K1_ORDER
from support.identity import (
    ContractWallet,
    Installation,
    LegacyKey,
    Passkey,
    Signer,
    Wallet,
)

TEXT = SignedText(b"XMTP : Authenticate to inbox")
OTHER_TEXT = SignedText(b"XMTP : Authenticate to another inbox")
ALICE, BOB = Wallet("alice"), Wallet("bob")
APP = Installation("app")
PASSKEY = Passkey("alice")
LEGACY = LegacyKey(ALICE, Wallet("legacy"))

KINDS: list[tuple[Signer, SignatureKind]] = [
    (ALICE, SignatureKind.ERC_191),
    (APP, SignatureKind.INSTALLATION),
    (PASSKEY, SignatureKind.PASSKEY),
    (Passkey("alice", is_compressed=False), SignatureKind.PASSKEY),
    (LEGACY, SignatureKind.LEGACY),
    (ContractWallet("safe"), SignatureKind.ERC_1271),
]


def read(signer: Signer, text: SignedText = TEXT) -> Signed:
    return read_signature(signer.sign(TEXT.text), text)


def is_good(message: Signature, expected: Signer, text: SignedText = TEXT) -> bool:
    """Whether a signature is by a signer, as far as its key alone can tell."""
    try:
        signed = read_signature(message, text)
        check(signed, text)
    except MalformedData:
        return False
    return signed.signer == expected.identifier


def with_high_s(signature: bytes) -> bytes:
    high = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + high.to_bytes(32, "big") + signature[64:]


# ---------------------------------------------------------------- every kind


@pytest.mark.conforms("I7")
@pytest.mark.parametrize(("signer", "kind"), KINDS)
def test_read__signature_of_each_kind__names_signer_and_kind(
    signer: Signer, kind: SignatureKind
) -> None:
    signed = read(signer)

    check(signed, TEXT)
    assert (signed.signer, signed.kind) == (signer.identifier, kind)
    assert signed.chain_id == (1 if kind is SignatureKind.ERC_1271 else None)


@pytest.mark.parametrize("signer", [signer for signer, _ in KINDS[:5]])
def test_check__signature_over_another_text__is_not_good(signer: Signer) -> None:
    assert is_good(signer.sign(TEXT.text), signer)
    assert not is_good(signer.sign(TEXT.text), signer, OTHER_TEXT)


def test_read__contract_wallet__hands_on_what_to_ask() -> None:
    safe = ContractWallet("safe", chain_id=10, block_number=99, suffix=b"x")

    proof = read(safe).proof

    message = safe.sign(TEXT.text).erc_6492
    asked = (10, safe.identifier.value, 99, TEXT.eip191_digest, message.signature)
    assert proof == asked


@pytest.mark.parametrize(
    "account",
    [
        "",
        "eip155:1",
        f"eip155:01:0x{'a' * 40}",
        f"solana:1:0x{'a' * 40}",
        f"eip155:1:{'a' * 40}",
        f"eip155:1:0x{'a' * 39}",
        f"eip155:1:0x{'g' * 40}",
        f"eip155:{'9' * 20}:0x{'a' * 40}",
    ],
)
def test_read__contract_wallet_of_another_form_of_account__is_refused(account: str) -> None:
    message = ContractWallet("safe").sign(TEXT.text)
    message.erc_6492.account_id = account

    with pytest.raises(MalformedData, match="account: expected eip155"):
        read_signature(message, TEXT)


def test_read__contract_wallet_with_a_checksummed_address__is_that_wallet() -> None:
    message = Signature()
    message.erc_6492.account_id = "eip155:1:0x" + "aB" * 20

    assert str(read_signature(message, TEXT).signer) == "0x" + "ab" * 20


def test_read__no_signature__is_refused() -> None:
    with pytest.raises(InvalidSignature, match="signature: expected one of five kinds"):
        read_signature(Signature(), TEXT)


# ------------------------------------------------------------------- wallets


@pytest.mark.parametrize("v", [0, 1])
def test_read__v_of_a_wallet_written_as_parity__is_the_same_signer(v: int) -> None:
    message = ALICE.sign(TEXT.text)
    message.erc_191.bytes = message.erc_191.bytes[:64] + bytes([message.erc_191.bytes[64] - 27])
    assert message.erc_191.bytes[64] in (0, 1)

    assert is_good(message, ALICE)


@pytest.mark.conforms("I5")
@pytest.mark.parametrize(
    "rewrite",
    [
        with_high_s,
        lambda signature: signature[:64] + bytes([signature[64] - 27]),
        lambda signature: with_high_s(signature)[:64] + bytes([signature[64] - 27]),
    ],
    ids=["high s", "parity", "both"],
)
def test_fingerprints__wallets_signature_rewritten__show_the_same_signature(
    rewrite: Callable[[bytes], bytes],
) -> None:
    message = ALICE.sign(TEXT.text)
    original = read_signature(message, TEXT)
    message.erc_191.bytes = rewrite(message.erc_191.bytes)

    again = read_signature(message, TEXT)

    assert again.signer == ALICE.identifier
    shared = again.fingerprints & original.fingerprints
    # The statement alone would also tell; the forms must do so by themselves, as contracts' do.
    assert len(shared) > 1


def test_read__high_s_with_the_other_parity__is_somebody_else() -> None:
    message = ALICE.sign(TEXT.text)
    flipped = with_high_s(message.erc_191.bytes)
    message.erc_191.bytes = flipped[:64] + bytes([55 - flipped[64]])

    # A correct signature of Alice; today's clients take it for another wallet's.
    assert not is_good(message, ALICE)


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        b"s" * 64,
        b"s" * 66,
        bytes(65),
        b"\xff" * 64 + b"\x00",
        b"s" * 64 + b"\x02",
        b"s" * 64 + b"\x25",
        SECP256K1_ORDER.to_bytes(32, "big") * 2 + b"\x00",
    ],
)
def test_read__wallets_signature_that_recovers_to_nobody__is_refused(signature: bytes) -> None:
    message = Signature()
    message.erc_191.bytes = signature

    with pytest.raises(InvalidSignature):
        read_signature(message, TEXT)


# --------------------------------------------------------------- legacy keys


def test_read__legacy_signature__signer_is_the_wallet_that_delegated() -> None:
    signed = read(LEGACY)

    assert signed.signer == ALICE.identifier
    assert signed.delegate == Wallet("legacy").identifier


def test_fingerprints__legacy_key_that_signs_another_text__show_the_same_delegation() -> None:
    later = read_signature(LEGACY.sign(OTHER_TEXT.text), OTHER_TEXT)

    assert later.fingerprints & read(LEGACY).fingerprints


def test_read__legacy_signature_by_another_key_than_the_delegated__is_refused() -> None:
    message = LEGACY.sign(TEXT.text)
    message.delegated_erc_191.signature.bytes = Wallet("mallory").signature(TEXT.text)

    with pytest.raises(InvalidSignature, match="expected one of the delegated key"):
        read_signature(message, TEXT)


@pytest.mark.parametrize("recovery", [2, 29, 256, 2**32 - 1])
def test_read__delegation_with_another_recovery__is_refused(recovery: int) -> None:
    message = LEGACY.sign(TEXT.text)
    key = message.delegated_erc_191.delegated_key
    key.signature.wallet_ecdsa_compact.recovery = recovery

    with pytest.raises(InvalidSignature, match="expected a recovery of 0, 1, 27 or 28"):
        read_signature(message, TEXT)


def test_read__delegation_in_the_other_compact_form__names_the_same_wallet() -> None:
    message = LEGACY.sign(TEXT.text)
    signature = message.delegated_erc_191.delegated_key.signature
    compact = signature.wallet_ecdsa_compact
    recovery, rs = compact.recovery, compact.bytes
    signature.ecdsa_compact.bytes, signature.ecdsa_compact.recovery = rs, recovery

    assert is_good(message, ALICE)


@pytest.mark.parametrize("key_bytes", [b"", b"\xff", b"\x1a\x02\x0a\x00", b"\x0a\x01x"])
def test_read__delegated_key_that_is_none__is_refused(key_bytes: bytes) -> None:
    message = LEGACY.sign(TEXT.text)
    message.delegated_erc_191.delegated_key.key_bytes = key_bytes

    with pytest.raises(InvalidSignature, match="delegated key: expected"):
        read_signature(message, TEXT)


def test_read__delegated_key_that_not_every_library_reads__is_refused() -> None:
    assert is_good(LegacyKey(ALICE, BOB, before_key=b"\x08\x01").sign(TEXT.text), ALICE)
    wrong_type = LegacyKey(ALICE, BOB, before_key=b"\x0a\x01x").sign(TEXT.text)

    with pytest.raises(InvalidSignature, match="delegated key: expected an UnsignedPublicKey"):
        read_signature(wrong_type, TEXT)


# ------------------------------------------------------------------ passkeys


CHALLENGE = TEXT.challenge


@pytest.mark.parametrize(
    "client_data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        json.dumps({"challenge": CHALLENGE}).encode(),
        json.dumps({"challenge": CHALLENGE, "origin": 1}).encode(),
        json.dumps({"challenge": OTHER_TEXT.challenge, "origin": "o"}).encode(),
        json.dumps({"challenge": CHALLENGE + "==", "origin": "o"}).encode(),
        json.dumps([CHALLENGE, "o"]).encode(),
        f'{{"challenge":"x","challenge":"{CHALLENGE}","origin":"o"}}'.encode(),
        f'{{"challenge":"{CHALLENGE}","origin":"o","x":NaN}}'.encode(),
        f'{{"challenge":"{CHALLENGE}","origin":"\\ud800"}}'.encode(),
        f'{{"challenge":"{CHALLENGE}","origin":"o","x":{"[" * 100}{"]" * 100}}}'.encode(),
    ],
)
def test_check__passkey_over_other_client_data__is_not_good(client_data: bytes) -> None:
    signed = read_signature(PASSKEY.assertion(client_data), TEXT)

    with pytest.raises(InvalidSignature, match="passkey's client data: expected"):
        check(signed, TEXT)


def test_check__passkey_that_is_no_point__signs_nothing() -> None:
    message = PASSKEY.sign(TEXT.text)
    message.passkey.public_key = b"\x02" + b"\xff" * 32

    with pytest.raises(InvalidSignature, match="expected one over the client data"):
        check(read_signature(message, TEXT), TEXT)


def test_check__passkey_with_other_authenticator_data__is_not_good() -> None:
    message = PASSKEY.sign(TEXT.text)
    message.passkey.authenticator_data += b"x"

    assert not is_good(message, PASSKEY)


# ---------------------------------------------------------------- strangers

# Signed once: a passkey's signatures differ each time, and Hypothesis repeats what it found.
WHOLE = [(signer, signer.sign(TEXT.text).SerializeToString()) for signer, _ in KINDS]


@given(st.sampled_from(WHOLE), st.data())
def test_read__any_signature_with_changed_bytes__never_ends_in_an_untyped_error(
    signed: tuple[Signer, bytes], data: st.DataObject
) -> None:
    signer, whole = signed
    position = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[position] ^= data.draw(st.integers(1, 255))
    message = Signature()
    with suppress(DecodeError):
        message.ParseFromString(bytes(changed))
        is_good(message, signer)
