from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.identity.actions import (
    Action,
    AddAssociation,
    ChangeRecovery,
    CreateInbox,
    RevokeAssociation,
)
from chainkit.identity.identifiers import (
    MemberIdentifier,
    MemberKind,
    installation,
    passkey,
    wallet,
)
from chainkit.identity.text import SignedText, create_identity_text, rfc3339, signature_text

OWNER = wallet("0x1234567890abcdef1234567890abcdef12345678")
ADDED = wallet("0x4567890abcdef1234567890abcdef12345678123")
RECOVERY = wallet("0x7890abcdef1234567890abcdef12345678123456")
APP = installation(bytes([1, 2, 3]) + bytes(29))
PASSKEY = passkey(b"\x02" + bytes(32))


def test_signature_text__all_kinds_of_actions__reads_as_libxmtp_writes_it() -> None:
    actions: list[Action] = [
        CreateInbox(OWNER, 0),
        AddAssociation(ADDED),
        AddAssociation(APP),
        RevokeAssociation(ADDED),
        RevokeAssociation(APP),
        ChangeRecovery(RECOVERY),
    ]

    text = signature_text(b"\xfc" * 32, 12, actions)

    # The wording of libxmtp's own test of all kinds, with our inbox and installation.
    assert (
        text
        == f"""XMTP : Authenticate to inbox

Inbox ID: {"fc" * 32}
Current time: 1970-01-01T00:00:00Z

- Create inbox
  (Owner: 0x1234567890abcdef1234567890abcdef12345678)
- Link address to inbox
  (Address: 0x4567890abcdef1234567890abcdef12345678123)
- Grant messaging access to app
  (ID: 010203{"00" * 29})
- Unlink address from inbox
  (Address: 0x4567890abcdef1234567890abcdef12345678123)
- Revoke messaging access from app
  (ID: 010203{"00" * 29})
- Change inbox recovery address
  (Address: 0x7890abcdef1234567890abcdef12345678123456)

For more info: https://xmtp.org/signatures"""
    )


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (AddAssociation(PASSKEY), f"- Link passkey to inbox\n  (Passkey: 02{'00' * 32})"),
        (RevokeAssociation(PASSKEY), f"- Unlink passkey from inbox\n  (Passkey: 02{'00' * 32})"),
    ],
)
def test_signature_text__passkey__has_words_of_its_own(action: Action, line: str) -> None:
    assert f"\n\n{line}\n\n" in signature_text(b"i" * 32, 0, [action])


def test_create_identity_text__key__ends_with_a_slash() -> None:
    expected = "XMTP : Create Identity\n0102\n\nFor more info: https://xmtp.org/signatures/"

    assert create_identity_text(b"\x01\x02") == expected


@given(st.integers(0, (2**63 - 1) // 10**9))
def test_rfc3339__any_second_until_2262__is_as_the_calendar_has_it(seconds: int) -> None:
    expected = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert rfc3339(seconds) == expected


@pytest.mark.parametrize("kind", MemberKind)
def test_signature_text__each_kind_of_member__can_be_added_and_revoked(kind: MemberKind) -> None:
    member = MemberIdentifier(kind, b"\x02" + bytes(32))

    added = signature_text(b"i" * 32, 0, [AddAssociation(member)])
    revoked = signature_text(b"i" * 32, 0, [RevokeAssociation(member)])

    assert str(member) in added
    assert str(member) in revoked
    assert added != revoked


def test_challenge__text__is_base64url_without_padding() -> None:
    assert SignedText(b"\xff\xfe?>").challenge == "__4_Pg"
