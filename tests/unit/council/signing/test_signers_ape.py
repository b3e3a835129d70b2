"""Accounts of Ape, whose plugins are played here: taken as they come, and doubted."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import click
import pytest

from chainkit.council.signing import ApeSigner, KeySigner, sign_transaction, sign_typed_data
from chainkit.council.signing.hashes import typed_data_digest
from chainkit.errors import ConfigurationError, InvalidSignature
from support.council.signers import FIELDS, TYPED_DATA

SIGNER = KeySigner("keystore", bytes(range(1, 33)))
DIGEST = typed_data_digest(TYPED_DATA)
SIGNATURE = SIGNER.sign_typed_data(TYPED_DATA)


class PlayedAccount:
    """An account of a plugin of Ape, which might do anything."""

    address = SIGNER.address

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def sign_message(self, message: Any) -> Any:
        assert message.version == b"\x01"
        return self.answer()


def ape_with(account: Any) -> types.ModuleType:
    module = types.ModuleType("ape")
    module.accounts = types.SimpleNamespace(load={"council-1": account}.__getitem__)  # type: ignore[attr-defined]
    return module


def parts(signature: bytes, v: Any = None) -> types.SimpleNamespace:
    found = signature[64] if v is None else v
    return types.SimpleNamespace(v=found, r=signature[:32], s=signature[32:64])


def played(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any]) -> ApeSigner:
    monkeypatch.setitem(sys.modules, "ape", ape_with(PlayedAccount(answer)))
    return ApeSigner("council-1")


def fail() -> Any:
    raise RuntimeError("device\x1b[2J said\nhush")


@pytest.mark.parametrize("v", [SIGNATURE[64], SIGNATURE[64] - 27, bytes([SIGNATURE[64]])])
def test_ape__plugins_ways_to_return_v__are_all_taken(
    monkeypatch: pytest.MonkeyPatch, v: Any
) -> None:
    signer = played(monkeypatch, lambda: parts(SIGNATURE, v))

    assert sign_typed_data(signer, TYPED_DATA, DIGEST) == SIGNATURE


def test_ape__number_without_its_leading_zeros__is_filled_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for nonce in range(2000):
        data = TYPED_DATA | {"message": TYPED_DATA["message"] | {"nonce": nonce}}
        signature = SIGNER.sign_typed_data(data)
        if signature[0] == 0:
            break
    short = types.SimpleNamespace(v=signature[64], r=signature[1:32], s=signature[32:64])

    signer = played(monkeypatch, lambda: short)

    assert sign_typed_data(signer, data, typed_data_digest(data)) == signature


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda: None, "expected a signature, got none: it was declined"),
        (fail, "got RuntimeError: device [2J said hush"),
        (lambda: parts(SIGNATURE, 31), "expected V 0, 1, 27 or 28, got V 31"),
        (lambda: parts(bytes(65), 27), "a recoverable public key"),
        (lambda: parts(SIGNATURE, 55 - SIGNATURE[64]), "signature of Ape account council-1"),
    ],
)
def test_ape__plugin_with_a_fault__is_noticed(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any], words: str
) -> None:
    signer = played(monkeypatch, answer)

    with pytest.raises((ConfigurationError, InvalidSignature)) as caught:
        sign_typed_data(signer, TYPED_DATA, DIGEST)

    assert words in str(caught.value)


def test_ape__interrupted_at_a_prompt__is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> Any:
        raise click.Abort

    with pytest.raises(click.Abort):
        played(monkeypatch, interrupt).sign_typed_data(TYPED_DATA)


def test_ape__what_it_prints__is_not_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def talk() -> Any:
        print("sign?")
        return parts(SIGNATURE)

    sign_typed_data(played(monkeypatch, talk), TYPED_DATA, DIGEST)

    assert capsys.readouterr() == ("", "sign?\n")


def test_ape__unknown_alias__names_the_command_that_lists_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ape", ape_with(None))

    with pytest.raises(ConfigurationError) as caught:
        ApeSigner("council\x1b-2")

    assert str(caught.value) == (
        "Ape account council -2: expected one that `ape accounts list --all` names, "
        "got none of that alias"
    )


def test_ape__not_installed__names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ape", None)

    with pytest.raises(ConfigurationError, match="expected Ape to be installed") as caught:
        ApeSigner("council-1")

    assert "pip install '.[contracts]' in a clone" in str(caught.value)


def test_ape__plugin_signs_another_chains_transaction__is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wallet(PlayedAccount):
        def sign_transaction(self, _: Any) -> Any:
            raw = SIGNER.sign_transaction(FIELDS | {"chainId": 1})
            r, s = raw[-65:-33], raw[-32:]
            return types.SimpleNamespace(signature=types.SimpleNamespace(v=0, r=r, s=s))

    monkeypatch.setitem(sys.modules, "ape", ape_with(Wallet(lambda: None)))
    monkeypatch.setattr("chainkit.council.signing.ape_account._ape_transaction", lambda *_: None)

    with pytest.raises(InvalidSignature, match="signed transaction of Ape account council-1"):
        sign_transaction(ApeSigner("council-1"), FIELDS)
