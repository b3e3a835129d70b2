"""The grounds of a proposal: its reason, the facts before and after, and its expiry.

A Safe's owners sign only calls. So the digest of the grounds, and the expiry, follow the arguments
of the last call, where Solidity reads nothing. An owner who signs the call signs its grounds, and
the chain keeps their digest.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from chainkit.council.calls import Facts, difference
from chainkit.documents.canonical import Record, line_bytes, short
from chainkit.errors import MalformedData
from chainkit.types import HASH_LENGTH

MARK: Final = b"XIP-49/1"
"""Begins the bytes that follow a call's arguments; 1 is the version of what follows."""

_EXPIRY_LENGTH: Final = 8
TRAILER_LENGTH: Final = len(MARK) + _EXPIRY_LENGTH + HASH_LENGTH

MOST_EVIDENCE: Final = 20
"""Pieces of evidence of one proposal."""

LONGEST_NAME: Final = 100
"""Characters of evidence's name."""
_NAME: Final = f"[ -~]{{1,{LONGEST_NAME}}}"
_EXPECTED_NAME: Final = f"1 to {LONGEST_NAME} printable characters"

LONGEST_DAYS: Final = 90
"""Most seconds from a proposal's draft until it expires."""
SECONDS_PER_DAY: Final = 86_400

LONGEST_REASON: Final = 200
"""Characters: people do not read a longer reason to its end."""

_FACT: Final = "[ -~]{0,4096}"
_EXPECTED_FACT: Final = "printable text of at most 4096 characters"

_FIELDS: Final = ("after", "before", "evidence", "expires", "reason", "runs")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A bundle or a report that a proposal rests on."""

    name: str
    """The name of the drafter's file or folder."""
    sha256: str
    """64 hex digits: of a report's file, or of a bundle's ``bundle.json``, which pins the rest."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """The part of a proposal that is signed beside the calls."""

    reason: str
    """One line of printable ASCII, with one blank between its words."""
    evidence: tuple[Evidence, ...]
    before: Facts
    """The chain's facts when the proposal was drafted."""
    after: Facts
    """The facts that must hold once the calls are made; of the same names."""
    runs: Facts
    """Address of the code that each proxy called ran at that time, by the contract's name."""
    expires: int
    """Seconds since 1970: nobody may sign or execute the proposal later."""

    @property
    def digest(self) -> bytes:
        """sha256 of all grounds in their one form, 32 bytes."""
        return hashlib.sha256(line_bytes(self.content())).digest()

    @property
    def trailer(self) -> bytes:
        """The TRAILER_LENGTH bytes that follow the arguments of the last call."""
        return MARK + self.expires.to_bytes(_EXPIRY_LENGTH, "big") + self.digest

    @property
    def difference(self) -> tuple[str, ...]:
        """Changes, a line each, safe to print."""
        return difference(self.before, self.after)

    def content(self) -> dict[str, Any]:
        """Return the grounds for JSON."""
        return {
            "reason": self.reason,
            "evidence": [{"name": each.name, "sha256": each.sha256} for each in self.evidence],
            "before": dict(self.before),
            "after": dict(self.after),
            "runs": dict(self.runs),
            "expires": self.expires,
        }

    @classmethod
    def parse(cls, content: Any, subject: str) -> Self:
        """Read what ``content`` returned. Raises MalformedData that names the field."""
        fields = Record(content, subject, _FIELDS)
        evidence = [each.record("value", "name", "sha256") for each in fields.elements("evidence")]
        if len(evidence) > MOST_EVIDENCE:
            raise MalformedData(f"{subject}, evidence", f"at most {MOST_EVIDENCE}", len(evidence))
        grounds = cls(
            reason=check_reason(fields.text("reason")),
            evidence=tuple(
                Evidence(
                    _check_blanks(
                        each.text("name", _NAME, _EXPECTED_NAME), f"{subject}, evidence name"
                    ),
                    each.text("sha256", "[0-9a-f]{64}", "64 hex digits"),
                )
                for each in evidence
            ),
            before=_facts(content["before"], f"{subject}, before"),
            after=_facts(content["after"], f"{subject}, after"),
            runs=_facts(content["runs"], f"{subject}, runs"),
            expires=fields.integer("expires"),
        )
        if grounds.before.keys() != grounds.after.keys():
            expected = f"the names in before: {short(', '.join(grounds.before))}"
            raise MalformedData(f"{subject}, after", expected, short(", ".join(grounds.after)))
        return grounds


@dataclass(frozen=True, slots=True)
class Trailer:
    """The part of a proposal's grounds that the chain stores."""

    expires: int
    """Seconds since 1970."""
    digest: bytes
    """32 bytes: `Grounds.digest`."""


def current_time(block_time: int) -> int:
    """Return the later of a block's time and the clock's, in seconds since 1970.

    An endpoint can name an old block, or there is no newer one; a clock can be slow.
    """
    return max(block_time, int(time.time()))


def split_trailer(data: bytes) -> tuple[bytes, Trailer | None]:
    """Return a call's data without its trailer, and the trailer; None where there is none."""
    start = len(data) - TRAILER_LENGTH
    if start < 0 or data[start : start + len(MARK)] != MARK:
        return data, None
    tail = data[start + len(MARK) :]
    expires = int.from_bytes(tail[:_EXPIRY_LENGTH], "big")
    return data[:start], Trailer(expires, tail[_EXPIRY_LENGTH:])


def check_reason(reason: str) -> str:
    """Return a reason.

    Raises MalformedData unless it is one short line of printable ASCII, its words a blank apart.
    """
    if not reason.strip() or len(reason) > LONGEST_REASON:
        got = f"{len(reason)} characters" if reason.strip() else "nothing"
        raise MalformedData("reason", f"1 to {LONGEST_REASON} characters", got)
    for number, character in enumerate(reason, start=1):
        if not 0x20 <= ord(character) < 0x7F:
            expected = "printable ASCII, so that everybody reads the same"
            got = f"{ascii(character)[1:-1]} as character {number}"
            raise MalformedData("reason", expected, got)
    return _check_blanks(reason, "reason")


def _check_blanks(text: str, subject: str) -> str:
    """Refuse blanks that would move text to where it looks like a line of its own."""
    if text.strip() != text or "  " in text:
        expected = "single blanks, and none at an end"
        raise MalformedData(subject, expected, f'"{short(text)}"')
    return text


def _facts(content: Any, subject: str) -> Mapping[str, str]:
    if not isinstance(content, dict):
        raise MalformedData(subject, "an object", type(content).__name__)
    fields = Record(content, subject, list(content))
    for name in content:
        Record({"name": name}, subject, ["name"]).text("name")
    return {name: fields.text(name, _FACT, _EXPECTED_FACT) for name in content}
