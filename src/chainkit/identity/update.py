"""Decodes the bytes of an identity update within bounds, with the signers that it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.identity.actions import (
    Action,
    AddAssociation,
    ChangeRecovery,
    CreateInbox,
    RevokeAssociation,
)
from chainkit.identity.identifiers import (
    MemberIdentifier,
    installation,
    parse_inbox_id,
    passkey,
    passkey_from_hex,
    wallet,
)
from chainkit.identity.refusals import Refusal, refused
from chainkit.identity.signed import Signed, read_signature
from chainkit.identity.text import SignedText, signature_text
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.proto import identity_associations_pb2 as associations_pb2
from chainkit.protocol.strict import check_strict, field_bytes

MAXIMUM_UPDATE_LENGTH: Final = 2**18
"""Bytes: a kilobyte for each action, four times what today's clients need for one."""
MAXIMUM_ACTIONS: Final = 256
"""Revoking all installations of the busiest inbox takes fewer."""
_UPDATE_FIELD: Final = 5
"""``ClientEnvelope.identity_update``."""
MAXIMUM_TIMESTAMP: Final = 2**63 - 1
"""Nanoseconds since 1970 that today's clients can write as a time: until the year 2262."""

_Message = (
    associations_pb2.CreateInbox
    | associations_pb2.AddAssociation
    | associations_pb2.RevokeAssociation
    | associations_pb2.ChangeRecoveryAddress
)


@dataclass(frozen=True, slots=True)
class SignedAction:
    """An action with its signatures."""

    action: Action
    signatures: tuple[Signed, ...]
    """One; of an addition two: the existing member's and the new one's."""


@dataclass(frozen=True, slots=True)
class IdentityUpdate:
    """Actions that were signed together; their signers are named, but not yet checked."""

    inbox_id: bytes
    """32 bytes."""
    client_timestamp_ns: int
    """Nanoseconds since 1970, by the client's clock."""
    text: SignedText
    actions: tuple[SignedAction, ...]

    @property
    def signatures(self) -> tuple[Signed, ...]:
        """All different signatures, in order: one is often given for several actions."""
        given = (signed for each in self.actions for signed in each.signatures)
        return tuple(dict.fromkeys(given))


def update_in(client_envelope: bytes) -> bytes:
    """Return the serialized IdentityUpdate of a ClientEnvelope, unchanged; empty for none.

    Raises NotStrict for bytes that readers differ on.
    """
    check_strict(client_envelope, envelopes_pb2.ClientEnvelope)
    return field_bytes(client_envelope, _UPDATE_FIELD) or b""


def read_update(data: bytes) -> IdentityUpdate:
    """Take the bytes of an IdentityUpdate apart, and name the signers.

    Raises RefusedUpdate for more than MAXIMUM_UPDATE_LENGTH bytes or MAXIMUM_ACTIONS actions, for
    none, for what does not parse or leaves a part out, and for signatures that name nobody.
    """
    if len(data) > MAXIMUM_UPDATE_LENGTH:
        expected = f"up to {MAXIMUM_UPDATE_LENGTH} bytes"
        raise refused(Refusal.TOO_LARGE, expected, f"{len(data)} bytes")
    try:
        message = associations_pb2.IdentityUpdate.FromString(data)
    except DecodeError as error:
        raise refused(Refusal.MALFORMED, "an IdentityUpdate", error) from error
    # Counted first: each field of each action would be looked at.
    _check_count(len(message.actions))
    try:
        check_strict(data, associations_pb2.IdentityUpdate)
        inbox_id = parse_inbox_id(message.inbox_id)
    except MalformedData as error:
        raise refused(Refusal.MALFORMED, error.expected, error.got, error.subject) from error
    if message.client_timestamp_ns > MAXIMUM_TIMESTAMP:
        expected = f"a time of up to {MAXIMUM_TIMESTAMP} ns"
        raise refused(Refusal.MALFORMED, expected, message.client_timestamp_ns)
    return _read(inbox_id, message)


def _check_count(count: int) -> None:
    if count == 0:
        raise refused(Refusal.NO_ACTION, "at least one action", "none")
    if count > MAXIMUM_ACTIONS:
        raise refused(Refusal.TOO_MANY_ACTIONS, f"up to {MAXIMUM_ACTIONS} actions", count)


def _read(inbox_id: bytes, message: associations_pb2.IdentityUpdate) -> IdentityUpdate:
    messages = [_message_of(action, n) for n, action in enumerate(message.actions, start=1)]
    actions = [_action_of(each, n) for n, each in enumerate(messages, start=1)]
    timestamp = message.client_timestamp_ns
    text = SignedText(signature_text(inbox_id, timestamp, actions).encode("utf-8"))
    # One signature often counts for several actions.
    known: dict[bytes, Signed] = {}
    signed = [
        SignedAction(action, tuple(_signed(each, text, known, n) for each in _signatures(whole)))
        for n, (action, whole) in enumerate(zip(actions, messages, strict=True), start=1)
    ]
    return IdentityUpdate(inbox_id, timestamp, text, tuple(signed))


def _message_of(action: associations_pb2.IdentityAction, number: int) -> _Message:
    kind = action.WhichOneof("kind")
    if kind is None:
        expected = "one of four kinds of actions"
        raise refused(Refusal.MALFORMED, expected, "another kind", place_of(number))
    found: _Message = getattr(action, kind)
    return found


def place_of(number: int) -> str:
    """Return an action's place in its update, for errors; the first is number 1."""
    return f"action {number}"


def _signatures(message: _Message) -> tuple[associations_pb2.Signature, ...]:
    match message:
        case associations_pb2.CreateInbox():
            return (message.initial_identifier_signature,)
        case associations_pb2.AddAssociation():
            return message.existing_member_signature, message.new_member_signature
        case associations_pb2.RevokeAssociation():
            return (message.recovery_identifier_signature,)
        case _:
            return (message.existing_recovery_identifier_signature,)


def _signed(
    message: associations_pb2.Signature, text: SignedText, known: dict[bytes, Signed], number: int
) -> Signed:
    key = message.SerializeToString()
    if key not in known:
        try:
            known[key] = read_signature(message, text)
        except MalformedData as error:
            expected, place = f"{error.subject} as {error.expected}", place_of(number)
            raise refused(Refusal.SIGNATURE_INVALID, expected, error.got, place) from error
    return known[key]


def _action_of(message: _Message, number: int) -> Action:
    try:
        match message:
            case associations_pb2.CreateInbox():
                kind = message.initial_identifier_kind
                return CreateInbox(_written(message.initial_identifier, kind), message.nonce)
            case associations_pb2.AddAssociation():
                return AddAssociation(_member(message.new_member_identifier))
            case associations_pb2.RevokeAssociation():
                return RevokeAssociation(_member(message.member_to_revoke))
            case _:
                kind = message.new_recovery_identifier_kind
                return ChangeRecovery(_written(message.new_recovery_identifier, kind))
    except MalformedData as error:
        expected, place = f"{error.subject} as {error.expected}", place_of(number)
        raise refused(Refusal.MALFORMED, expected, error.got, place) from error


def _written(text: str, kind: int) -> MemberIdentifier:
    """Return an identifier that an update writes as text; old clients leave out its kind."""
    if kind in (
        associations_pb2.IDENTIFIER_KIND_UNSPECIFIED,
        associations_pb2.IDENTIFIER_KIND_ETHEREUM,
    ):
        return wallet(text)
    if kind == associations_pb2.IDENTIFIER_KIND_PASSKEY:
        return passkey_from_hex(text)
    raise MalformedData("kind of identifier", "0, 1 or 2", kind)


def _member(message: associations_pb2.MemberIdentifier) -> MemberIdentifier:
    match message.WhichOneof("kind"):
        case "ethereum_address":
            return wallet(message.ethereum_address)
        case "installation_public_key":
            return installation(message.installation_public_key)
        case "passkey":
            return passkey(message.passkey.key)
    raise MalformedData("member", "one of three kinds", "another kind")
