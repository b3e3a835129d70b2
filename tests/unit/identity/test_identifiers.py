from collections.abc import Callable
from typing import Any

import pytest

from chainkit.errors import MalformedData
from chainkit.identity.identifiers import (
    MemberIdentifier,
    MemberKind,
    derive_inbox_id,
    installation,
    parse_identifier,
    parse_inbox_id,
    passkey,
    passkey_from_hex,
    wallet,
    wallet_of,
)
from support.identity import Passkey, Wallet
from support.vectors import load

INBOXES = load("identity_updates")["inboxes"]
ALICE = Wallet("alice").identifier
PASSKEY = Passkey("alice").identifier
ADDRESS = "0x1234567890abcdef1234567890abcdef12345678"


def test_derive_inbox_id__vector_of_libxmtp__is_the_same() -> None:
    # The vector of libxmtp's own tests.
    expected = "fcd18d86276d7a99fe522dba9660c420f03c8648785ada7c5daae232a3df77a9"

    assert derive_inbox_id(wallet(ADDRESS), 0).hex() == expected


@pytest.mark.parametrize("inbox", INBOXES)
def test_derive_inbox_id__owner_of_a_recorded_inbox__gives_its_id(inbox: dict[str, Any]) -> None:
    account = inbox["cases"][0]["accounts"][0]
    owner = wallet(account) if account.startswith("0x") else passkey_from_hex(account)

    assert derive_inbox_id(owner, inbox["nonce"]).hex() == inbox["inbox_id"]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "0x",
        ADDRESS[2:],
        ADDRESS.upper(),
        ADDRESS.replace("a", "A"),
        ADDRESS + "0",
        ADDRESS + "\n",
    ],
)
def test_wallet__address_in_another_form__is_refused(address: str) -> None:
    with pytest.raises(MalformedData, match="address: expected 0x and 40 lower-case"):
        wallet(address)


@pytest.mark.parametrize("key", [b"", b"\x02" * 32, b"\x04" * 33, b"\x05" * 33, b"\x02" * 65])
def test_passkey__bytes_that_are_no_form_of_sec_1__are_refused(key: bytes) -> None:
    with pytest.raises(MalformedData, match="passkey: expected a P-256 key"):
        passkey(key)


@pytest.mark.parametrize("text", ["", "02" * 32, "0A" * 33, " " + "02" * 33, "02" * 33 + "\n"])
def test_passkey_from_hex__text_in_another_form__is_refused(text: str) -> None:
    with pytest.raises(MalformedData, match="passkey: expected 66 or 130"):
        passkey_from_hex(text)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_installation__key_of_another_length__is_refused(length: int) -> None:
    with pytest.raises(MalformedData, match=f"installation key: expected 32 bytes, got {length}"):
        installation(b"k" * length)


def test_wallet_of__bytes_of_another_length__are_refused() -> None:
    with pytest.raises(MalformedData, match="address: expected 20 bytes, got 32 bytes"):
        wallet_of(b"a" * 32)


@pytest.mark.parametrize("text", ["", "0x" + "0" * 62, "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_parse_inbox_id__text_in_another_form__is_refused(text: str) -> None:
    with pytest.raises(MalformedData, match="inbox id: expected 64 lower-case"):
        parse_inbox_id(text)


@pytest.mark.conforms("I14")
@pytest.mark.parametrize("write", [str.upper, str.lower, str.title])
@pytest.mark.parametrize("identifier", [ALICE, PASSKEY])
def test_parse_identifier__text_in_any_case__is_the_same_identifier(
    identifier: MemberIdentifier, write: Callable[[str], str]
) -> None:
    assert parse_identifier(write(str(identifier)), identifier.kind) == identifier


@pytest.mark.conforms("I14")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", MemberKind.ETHEREUM),
        ("alice", MemberKind.ETHEREUM),
        (str(ALICE), MemberKind.PASSKEY),
        (str(PASSKEY), MemberKind.ETHEREUM),
        ("00" * 32, MemberKind.INSTALLATION),
    ],
)
def test_parse_identifier__text_of_another_kind__is_none(text: str, kind: MemberKind) -> None:
    assert parse_identifier(text, kind) is None
