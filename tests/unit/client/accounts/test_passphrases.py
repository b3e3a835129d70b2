"""The passphrase that a wallet's signature gives, and the wallets that give none."""

from __future__ import annotations

import pytest
from eth_keys.backends.native import ecdsa

from chainkit.errors import ConfigurationError, InvalidSignature
from chainkit.identity.text import eip191_digest
from chainkit.signatures import SigningKey, address_of
from chainkit_client.accounts.passphrases import (
    UnsteadyWallet,
    check_passphrase,
    new_wallet_passphrase,
    signed_text,
    wallet_passphrase,
)

WALLET, OTHER = SigningKey(b"\7" * 32), SigningKey(b"\6" * 32)
ADDRESS = address_of(WALLET.public_key).lower()
SALT = bytes(range(16))


def sign(text: bytes) -> bytes:
    return WALLET.sign(eip191_digest(text))


@pytest.mark.conforms("H26")
def test_passphrase__wallet_signs_alike__is_the_same_whichever_form_its_last_byte_has() -> None:
    made = new_wallet_passphrase(SALT, ADDRESS, sign)

    def as_wallets_write(text: bytes) -> bytes:
        signature = sign(text)
        return signature[:64] + bytes([signature[64] + 27])

    assert wallet_passphrase(SALT, ADDRESS, as_wallets_write) == made
    assert len(bytes.fromhex(made)) == 32
    assert sign(signed_text(SALT))[:64].hex() not in made


def test_passphrase__of_another_file_of_the_same_wallet__is_another() -> None:
    assert signed_text(SALT) != signed_text(bytes(16))
    made = {new_wallet_passphrase(salt, ADDRESS, sign) for salt in (SALT, bytes(16))}
    assert len(made) == 2


def test_passphrase__second_signature_by_another_wallet__is_refused() -> None:
    signers = iter((WALLET, OTHER))

    with pytest.raises(InvalidSignature, match="one by the wallet"):
        new_wallet_passphrase(SALT, ADDRESS, lambda text: next(signers).sign(eip191_digest(text)))


@pytest.mark.conforms("H26")
def test_passphrase__wallet_with_random_nonces__is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter((11, 12))
    monkeypatch.setattr(ecdsa, "deterministic_generate_k", lambda *_: next(made))

    def randomly(text: bytes) -> bytes:
        v, r, s = ecdsa.ecdsa_raw_sign(eip191_digest(text), b"\7" * 32)
        return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([v])

    with pytest.raises(UnsteadyWallet, match="seal by a passphrase"):
        new_wallet_passphrase(SALT, ADDRESS, randomly)


@pytest.mark.parametrize("signature", [b"", bytes(65), b"\xff" * 65, b"\1" * 200, bytes(64)])
def test_passphrase__signature_of_a_contract_wallet__is_refused(signature: bytes) -> None:
    with pytest.raises(InvalidSignature):
        new_wallet_passphrase(SALT, ADDRESS, lambda text: signature)


def test_check__short_passphrase__is_refused() -> None:
    assert check_passphrase("twelve chars") == "twelve chars"
    with pytest.raises(ConfigurationError, match="at least 12 characters"):
        check_passphrase("eleven char")
