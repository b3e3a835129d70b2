"""Tokens by which a node authenticates to another node (XIP-49 §3.2.5). No I/O, no clock.

A token is a JWT that a node's registered key signed for one server. ``read_token`` needs the token
alone, and takes longest; ``check_issued`` and ``check_registered`` are cheap, and depend on the
time and on the registry. So a server reads a token once, and checks the token for each call.

The signature is over keccak256 of ``jwt|`` and the JWT's signing input, as in today's nodes, which
also send ``exp`` and a list for ``aud``; XIP-49 does not have these. Both forms are accepted.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from chainkit.documents.fields import parse_json
from chainkit.errors import ConfigurationError, InvalidSignature
from chainkit.service.refusals import Unauthenticated
from chainkit.signatures import JWT_LABEL, SigningKey, keccak256, recover_public_key
from chainkit.types import Node

NODE_TOKEN_KEY: Final = "node-authorization"
"""The metadata key in which today's nodes send a token."""
TOKEN_KEY: Final = "authorization"
"""The metadata key of XIP-49; the token may follow ``Bearer``."""

MOST_AGE_SECONDS: Final = 3600
"""How long ago a token may have been issued."""
MOST_AHEAD_SECONDS: Final = 60
"""How far the client's clock may be ahead of the server's."""
MOST_TOKEN_LENGTH: Final = 4096
"""Characters; today's tokens have 300."""

_HEADER: Final = {"alg": "ES256K", "typ": "JWT"}
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")
_NODE_ID: Final = re.compile(r"[1-9][0-9]{0,9}")
_MOST_NODE_ID: Final = 2**32 - 1
_MOST_SECONDS: Final = 2**53
_SCHEME: Final = "bearer "
_SUBJECT: Final = "token"


class TokenFault(StrEnum):
    """Why a token is refused; the first reason in this order that applies."""

    MALFORMED = "malformed"
    WRONG_ALGORITHM = "wrong_algorithm"
    """The header names another algorithm, or another type than JWT."""
    INVALID_SIGNATURE = "invalid_signature"
    """The signature is not valid for any key."""
    TOO_OLD = "too_old"
    FROM_THE_FUTURE = "from_the_future"
    EXPIRED = "expired"
    WRONG_AUDIENCE = "wrong_audience"
    UNKNOWN_SUBJECT = "unknown_subject"
    """The registry lists no such node."""
    DISABLED_SUBJECT = "disabled_subject"
    WRONG_KEY = "wrong_key"
    """Another key than the subject's made the signature."""


class RefusedToken(Unauthenticated):
    """A token does not prove which node asks; ``fault`` is the reason, without any of the token."""

    fault: TokenFault = TokenFault.MALFORMED


@dataclass(frozen=True, slots=True)
class SignedToken:
    """Claims of a token, and the key that signed them."""

    subject: int
    """Id of the node that asks."""
    audience: frozenset[str]
    """Ids of the nodes that the token is for, as text."""
    issued_at: int
    """Seconds since 1970."""
    expires_at: int | None
    """Seconds since 1970; None where the token has no ``exp``."""
    public_key: bytes
    """65 bytes."""

    def check_issued(self, own_id: int | None, now: float) -> None:
        """Check the token's audience and time; ``now`` is in seconds since 1970.

        Raises RefusedToken.
        """
        age = now - self.issued_at
        if age > MOST_AGE_SECONDS:
            expected = f"issued at most {MOST_AGE_SECONDS} s ago"
            raise _refused(TokenFault.TOO_OLD, expected, f"{age:.0f} s ago")
        if -age > MOST_AHEAD_SECONDS:
            expected = f"issued at most {MOST_AHEAD_SECONDS} s ahead of this node's clock"
            raise _refused(TokenFault.FROM_THE_FUTURE, expected, f"{-age:.0f} s ahead")
        if self.expires_at is not None and now >= self.expires_at:
            got = f"one that expired {now - self.expires_at:.0f} s ago"
            raise _refused(TokenFault.EXPIRED, "a token that has not expired", got)
        if own_id is None or str(own_id) not in self.audience:
            own = "this node, which is not registered" if own_id is None else f"node {own_id}"
            raise _refused(TokenFault.WRONG_AUDIENCE, f"a token for {own}", "one for another")

    def check_registered(self, nodes: Mapping[int, Node]) -> None:
        """Check the subject against the registry's nodes by their ids. Raises RefusedToken."""
        node = nodes.get(self.subject)
        if node is None:
            got = f"node {self.subject}"
            raise _refused(TokenFault.UNKNOWN_SUBJECT, "a node that is registered", got)
        if not node.is_enabled:
            expected, got = "a node that is enabled", f"node {self.subject}, which is disabled"
            raise _refused(TokenFault.DISABLED_SUBJECT, expected, got)
        if node.signing_key != self.public_key:
            expected = f"a signature by the key of node {self.subject}"
            raise _refused(TokenFault.WRONG_KEY, expected, "one by another key")


def write_token(
    key: SigningKey, client_id: int, server_id: int, issued_at: int, expires_at: int
) -> str:
    """Return a token of one node for another, as today's nodes write it.

    ``key`` is the client's. Moments are in seconds since 1970.
    """
    claims = {
        "sub": str(client_id),
        "aud": [str(server_id)],
        "exp": expires_at,
        "iat": issued_at,
    }
    signed = f"{_encoded_json(_HEADER)}.{_encoded_json(claims)}"
    return f"{signed}.{_encoded(key.sign(token_digest(signed)))}"


def token_digest(signing_input: str) -> bytes:
    """Return the 32-byte digest to sign, of a token's header and claims in ASCII."""
    return keccak256(JWT_LABEL + signing_input.encode("ascii"))


def token_in(value: str) -> str:
    """Return the token of a metadata value, which may begin with ``Bearer``."""
    return value[len(_SCHEME) :] if value[: len(_SCHEME)].lower() == _SCHEME else value


def read_token(token: str) -> SignedToken:
    """Return the claims and the signer's key; the registry is not checked.

    Raises RefusedToken, and no other error, for any text.
    """
    if len(token) > MOST_TOKEN_LENGTH:
        raise _malformed(f"up to {MOST_TOKEN_LENGTH} characters", "more")
    parts = token.split(".")
    if len(parts) != 3:
        raise _malformed("a header, claims and a signature", f"{len(parts)} parts")
    _check_header(_object(parts[0], "header"))
    claims = _object(parts[1], "claims")
    subject, audience = _node_id(claims), _audience(claims)
    issued_at = _seconds(claims, "iat")
    expires_at = _seconds(claims, "exp") if "exp" in claims else None
    signature = _decoded(parts[2], "signature")
    try:
        public_key = recover_public_key(signature, token_digest(f"{parts[0]}.{parts[1]}"))
    except InvalidSignature as error:
        raise _refused(TokenFault.INVALID_SIGNATURE, error.expected, error.got) from error
    return SignedToken(subject, audience, issued_at, expires_at, public_key)


def _check_header(header: Mapping[str, Any]) -> None:
    if "crit" in header:
        # A header names extensions without which nobody may accept the token (RFC 7515 §4.1.11).
        raise _malformed("a header without critical extensions", "one with them")
    if any(header.get(name) != value for name, value in _HEADER.items()):
        expected = "a header with alg ES256K and typ JWT"
        raise _refused(TokenFault.WRONG_ALGORITHM, expected, "another one")


def _node_id(claims: Mapping[str, Any]) -> int:
    value = claims.get("sub")
    if not isinstance(value, str) or not _NODE_ID.fullmatch(value) or int(value) > _MOST_NODE_ID:
        raise _malformed("sub: a node id in decimal digits, as text", "another value")
    return int(value)


def _audience(claims: Mapping[str, Any]) -> frozenset[str]:
    value = claims.get("aud")
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in values):
        raise _malformed("aud: text or a list of texts", "another value")
    return frozenset(values)


def _seconds(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    # JSON's true equals 1 in Python, but is no number.
    if type(value) is not int or not 0 <= value <= _MOST_SECONDS:
        raise _malformed(f"{name}: whole seconds since 1970", "another value")
    return value


def _object(part: str, name: str) -> dict[str, Any]:
    try:
        content = parse_json(_decoded(part, name), _SUBJECT)
    except ConfigurationError:
        raise _malformed(f"{name}: JSON without a field twice", "something else") from None
    if not isinstance(content, dict):
        raise _malformed(f"{name}: an object", "another value")
    return content


def _decoded(part: str, name: str) -> bytes:
    expected = f"{name}: base64url without padding"
    if not _BASE64URL.fullmatch(part):
        raise _malformed(expected, "another form")
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise _malformed(expected, "a wrong length") from None
    if _encoded(data) != part:
        # One token must have one form.
        raise _malformed(expected, "bits behind the last byte")
    return data


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _encoded_json(content: Mapping[str, Any]) -> str:
    return _encoded(json.dumps(content, separators=(",", ":")).encode())


def _malformed(expected: object, got: object) -> RefusedToken:
    return _refused(TokenFault.MALFORMED, expected, got)


def _refused(fault: TokenFault, expected: object, got: object) -> RefusedToken:
    refusal = RefusedToken(_SUBJECT, expected, got)
    refusal.fault = fault
    return refusal
