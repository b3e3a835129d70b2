"""The text that all signers of an identity update sign (XIP-46, signing text).

Two forms differ from the XIP's, as today's clients sign: the time is RFC 3339 with a Z, and the
footer's address has no slash at its end.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

from chainkit.identity.actions import (
    Action,
    AddAssociation,
    ChangeRecovery,
    CreateInbox,
    RevokeAssociation,
)
from chainkit.identity.identifiers import MemberKind
from chainkit.signatures import keccak256
from chainkit.types import NANOSECONDS_PER_SECOND

_ADDITIONS: Final = {
    MemberKind.ETHEREUM: "- Link address to inbox\n  (Address: {})",
    MemberKind.INSTALLATION: "- Grant messaging access to app\n  (ID: {})",
    MemberKind.PASSKEY: "- Link passkey to inbox\n  (Passkey: {})",
}
_REVOCATIONS: Final = {
    MemberKind.ETHEREUM: "- Unlink address from inbox\n  (Address: {})",
    MemberKind.INSTALLATION: "- Revoke messaging access from app\n  (ID: {})",
    MemberKind.PASSKEY: "- Unlink passkey from inbox\n  (Passkey: {})",
}
_SECONDS_PER_DAY: Final = 86_400
_DAYS_OF_ERA: Final = 146_097
"""Days of 400 years, after which the calendar repeats."""
_DAYS_TO_1970: Final = 719_468
"""Days from 1 March of the year 0 to 1 January 1970."""


def signature_text(inbox_id: bytes, client_timestamp_ns: int, actions: Iterable[Action]) -> str:
    """Return the text of an update: the inbox, the signer's time in seconds, two lines an action.

    ``client_timestamp_ns`` is in nanoseconds since 1970, by the client's clock.
    """
    lines = "\n".join(map(_action_text, actions))
    return (
        "XMTP : Authenticate to inbox\n\n"
        f"Inbox ID: {inbox_id.hex()}\n"
        f"Current time: {rfc3339(client_timestamp_ns // NANOSECONDS_PER_SECOND)}\n\n"
        f"{lines}\n\n"
        "For more info: https://xmtp.org/signatures"
    )


def create_identity_text(key_bytes: bytes) -> str:
    """Return the text by which a wallet once delegated to a key (XIP-46, backward compatibility).

    ``key_bytes`` are a serialized UnsignedPublicKey. This footer does end with a slash.
    """
    footer = "For more info: https://xmtp.org/signatures/"
    return f"XMTP : Create Identity\n{key_bytes.hex()}\n\n{footer}"


def eip191_digest(text: bytes) -> bytes:
    """Return the 32 bytes that a wallet signs for a text (ERC-191, version E)."""
    return keccak256(b"\x19Ethereum Signed Message:\n%d" % len(text) + text)


@dataclass(frozen=True)
class SignedText:
    """A text with its digests, each computed once however many signatures are over it."""

    text: bytes
    """UTF-8."""

    @cached_property
    def eip191_digest(self) -> bytes:
        """32 bytes: what wallets sign."""
        return eip191_digest(self.text)

    @cached_property
    def sha256(self) -> bytes:
        """32 bytes: the digest that stands for the text among used signatures."""
        return sha256(self.text).digest()

    @cached_property
    def challenge(self) -> str:
        """The text in base64url without padding, as WebAuthn's client data repeats it."""
        return urlsafe_b64encode(self.text).rstrip(b"=").decode("ascii")


def rfc3339(seconds: int) -> str:
    """Write a time in seconds since 1970 as RFC 3339 in UTC, with a Z."""
    days, second = divmod(seconds, _SECONDS_PER_DAY)
    year, month, day = _civil(days)
    hour, rest = divmod(second, 3600)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{rest // 60:02}:{rest % 60:02}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day since 1970, in the Gregorian calendar.

    In this computation a year begins in March, so that the leap day is its last.
    """
    era, day_of_era = divmod(days + _DAYS_TO_1970, _DAYS_OF_ERA)
    leap_days = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leap_days) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def _action_text(action: Action) -> str:
    match action:
        case CreateInbox():
            return f"- Create inbox\n  (Owner: {action.owner})"
        case AddAssociation():
            return _ADDITIONS[action.member.kind].format(action.member)
        case RevokeAssociation():
            return _REVOCATIONS[action.member.kind].format(action.member)
        case ChangeRecovery():
            return f"- Change inbox recovery address\n  (Address: {action.recovery})"
