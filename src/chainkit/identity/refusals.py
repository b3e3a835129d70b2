"""Why an identity update is refused: one reason for each rule of XIP-46."""

from __future__ import annotations

from enum import StrEnum

from chainkit.errors import RefusedUpdate


class Refusal(StrEnum):
    """Why an update is refused: all of the update, whichever action breaks the rule."""

    TOO_LARGE = "more bytes than an update may have"
    TOO_MANY_ACTIONS = "more actions than an update may have"
    TOO_MANY_SIGNATURES = "more signatures to check than an update may have"
    MALFORMED = "not an identity update"
    NO_ACTION = "no action"
    WRONG_TOPIC = "inbox id is not the topic's"
    WRONG_INBOX = "inbox id does not derive from the initial identifier"
    NOT_CREATED = "inbox is not created yet"
    ALREADY_CREATED = "inbox is created already"
    SIGNATURE_INVALID = "a signature is not valid"
    SIGNATURE_USED = "a signature was used before"
    WRONG_SIGNER = "a signature is not of the identifier that has to sign"
    WRONG_SIGNATURE_KIND = "kind of signature does not fit the kind of member"
    NOT_A_MEMBER = "no member, and not the recovery identifier"
    ADDS_ITSELF = "a member adds itself"
    MAY_NOT_ADD = "kind of member may not add that kind"
    LEGACY_KEY = "a legacy key may not sign that"
    REVOKES_NO_MEMBER = "revoked identifier is no member"
    NOT_THE_RECOVERY = "signer is not the recovery identifier"
    WRONG_CHAIN = "contract wallet is of another chain than the member"
    UNKNOWN_CHAIN = "contract wallet is of a chain that is not supported"
    SECOND_ROLE = "key has another role already"


def refused(reason: Refusal, expected: object, got: object, place: str = "") -> RefusedUpdate:
    """Return the error of a refused update, to be raised; ``place`` names the action."""
    error = RefusedUpdate("identity update", expected, got, place)
    error.reason = reason
    return error
