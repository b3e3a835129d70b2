"""A gateway's clients: their names, and how much each client may publish (XIP-49 §3.1.2).

A client is named by its token, without tokens by its address. Each client has a bucket of
envelopes and a bucket of bytes, which fill at a steady rate: a request takes from both buckets,
or is refused and takes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError
from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.service.allowance import Buckets
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import InvalidRequest, Overloaded, Unauthenticated

_MOST_FILE_BYTES: Final = 1 << 20
_LINE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})[ \t]+([!-~]{16,512})")
_SCHEME: Final = "bearer "


class Tokens:
    """The clients' tokens by hash; no token shows in a repr or an error."""

    def __init__(self, names: dict[bytes, str]) -> None:
        """Use ``read``."""
        self._names = names

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read ``NAME TOKEN`` lines; skip empty lines and comments, which begin with ``#``.

        A name may have several valid tokens. Raises ConfigurationError for any other line, a
        token that occurs twice, and a file without tokens.
        """
        subject = f"tokens {path}"
        names: dict[bytes, str] = {}
        text = read_regular(path, subject, _MOST_FILE_BYTES).decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            place = f"line {number}"
            if match is None:
                expected = "a name, a space, and a token of 16 to 512 characters"
                raise ConfigurationError(subject, expected, "another line", place)
            if (hashed := _hashed(match[2])) in names:
                raise ConfigurationError(subject, "a token of its own", "one used before", place)
            names[hashed] = match[1]
        if not names:
            raise ConfigurationError(subject, "at least one token", "none")
        return cls(names)

    @property
    def names(self) -> frozenset[str]:
        """The names of all clients."""
        return frozenset(self._names.values())

    def client(self, caller: Caller) -> str:
        """Return the name of the token that a caller has. Raises Unauthenticated."""
        given = caller.authorization or ""
        token = given[len(_SCHEME) :] if given.lower().startswith(_SCHEME) else ""
        hashed, found = _hashed(token), None
        # Compare all tokens, so that the time reveals nothing.
        for each, name in self._names.items():
            if hmac.compare_digest(each, hashed):
                found = name
        if found is None:
            expected = "metadata authorization: Bearer TOKEN, with a token of this gateway"
            raise Unauthenticated("client", expected, "another one" if given else "none")
        return found


@dataclass(frozen=True, slots=True)
class RateLimits:
    """How much one client may publish."""

    envelopes_per_second: int = 1000
    burst: int = 2000
    """Envelopes at once, after a pause."""
    bytes_per_second: int = 25 << 20


@dataclass(frozen=True, slots=True)
class OpenLimits:
    """How much clients may have open, together where no other is named; 0 switches a limit off."""

    connections: int = 10_000
    calls: int = 10_000
    """Calls that are answered at a time: a commit waits for its block."""
    calls_of_one: int = 5_000
    """So that one client's calls that wait leave places to others."""


class Clients:
    """Names clients and counts what they publish; used on the event loop's thread."""

    def __init__(
        self, tokens: Tokens | None, limits: RateLimits, clock: Callable[[], float]
    ) -> None:
        """Take the tokens, None to name clients by address, and a clock in seconds."""
        self._tokens = tokens
        self._limits = limits
        self._clock = clock
        self._envelopes = Buckets(limits.envelopes_per_second, limits.burst)
        # A whole message must fit, however low the rate is.
        most_length = max(MOST_MESSAGE_BYTES, limits.bytes_per_second)
        self._bytes = Buckets(limits.bytes_per_second, most_length)

    def name(self, caller: Caller) -> str:
        """Return a client's name. Raises Unauthenticated."""
        if self._tokens is not None:
            return self._tokens.client(caller)
        return caller.address

    def take(self, name: str, envelopes: int, length: int) -> None:
        """Let a client publish so many envelopes of so many bytes in all.

        Raises Overloaded, which says when to try again, and InvalidRequest for more than the burst.
        """
        limits = self._limits
        if envelopes > limits.burst:
            expected = f"at most {limits.burst} at once"
            raise InvalidRequest("envelopes of a request", expected, envelopes)
        now = self._clock()
        missing = max(
            self._envelopes.seconds_to_wait(name, now, envelopes),
            self._bytes.seconds_to_wait(name, now, length),
        )
        if missing > 0:
            expected = (
                f"at most {limits.envelopes_per_second} envelopes and "
                f"{limits.bytes_per_second} bytes a second"
            )
            again = f"again in {missing:.1f} s"
            raise Overloaded(f"publications of {name}", expected, "more", again)
        self._envelopes.take(name, now, envelopes)
        self._bytes.take(name, now, length)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
