"""How long a gateway has nodes keep what its clients publish (XIP-69): a policy of its payer.

The payer pays by the byte and day. So a client may name another number of days only within the
bounds of the policy; without ``most`` a client may ask for less time than the policy's, not for
more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from chainkit.documents.fields import Faults, Fields, read_json
from chainkit.protocol.retention import (
    DEFAULT_RETENTION_DAYS,
    LEAST_RETENTION_DAYS,
    MAXIMUM_RETENTION_DAYS,
)
from chainkit.service.refusals import InvalidRequest
from chainkit.types import TopicKind

_MOST_FILE_BYTES: Final = 1 << 20
_KINDS: Final = {
    "chat": TopicKind.GROUP_MESSAGE,
    "welcome": TopicKind.WELCOME,
    "key_package": TopicKind.KEY_PACKAGE,
}
_NUMBERS: Final = ("days", "least", "most")


@dataclass(frozen=True, slots=True)
class Term:
    """For how many days payloads of a kind are kept."""

    days: int
    """Where the call names no other number."""
    least: int
    """The least days that a call may name."""
    most: int
    """The most days that a call may name."""


Terms = Mapping[TopicKind, Term]

_DEFAULT: Final[Terms] = {
    kind: Term(days, LEAST_RETENTION_DAYS, days) for kind, days in DEFAULT_RETENTION_DAYS.items()
}


class RetentionPolicy:
    """The terms of all clients, and those of clients with terms of their own."""

    def __init__(
        self, terms: Terms = _DEFAULT, of_clients: Mapping[str, Terms] | None = None
    ) -> None:
        """Take terms for each kind that a node originates; XIP-69's without an argument."""
        self._terms = terms
        self._of_clients = of_clients or {}

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a policy in JSON; what the file leaves out is as without it.

        ::

            {"default": {"chat": {"days": 30, "least": 1, "most": 90}},
             "clients": {"NAME": {"chat": {"days": 7}}}}

        Raises ConfigurationError that names the file and each field that is unknown, has no number
        from 1 to 365, or contradicts another field.
        """
        subject = f"retention {path}"
        content = Fields(read_json(path, subject, _MOST_FILE_BYTES), subject)
        faults = Faults(subject)
        sections = faults.known(content, ("default", "clients"))
        terms = _DEFAULT
        if "default" in sections:
            terms = _terms(faults.read(None, content.inner, "default"), _DEFAULT, faults)
        of_clients = {}
        if "clients" in sections and (clients := faults.read(None, content.inner, "clients")):
            for name in clients.names():
                of_clients[name] = _terms(faults.read(None, clients.inner, name), terms, faults)
        faults.raise_all()
        return cls(terms, of_clients)

    @property
    def clients(self) -> frozenset[str]:
        """The names of clients that have terms of their own."""
        return frozenset(self._of_clients)

    def days(self, client: str, kind: TopicKind, wish: int | None) -> int:
        """Return the days of a client's payload, for which the call names ``wish`` or None.

        Raises InvalidRequest, with the bounds, for a wish outside of them.
        """
        term = self._of_clients.get(client, self._terms)[kind]
        if wish is None:
            return term.days
        if not term.least <= wish <= term.most:
            expected = f"{term.least} to {term.most} for a {kind.name.lower().replace('_', ' ')}"
            raise InvalidRequest("retention days", expected, wish)
        return wish


def _terms(content: Fields | None, otherwise: Terms, faults: Faults) -> Terms:
    if content is None:
        return otherwise
    found = dict(otherwise)
    for name in faults.known(content, tuple(_KINDS)):
        kind = _KINDS[name]
        if (section := faults.read(None, content.inner, name)) is not None:
            found[kind] = _term(section, otherwise[kind], faults)
    return found


def _term(content: Fields, otherwise: Term, faults: Faults) -> Term:
    numbers = {}
    for name in faults.known(content, _NUMBERS):
        number = faults.read(None, content.integer, name)
        if number is None:
            continue
        if LEAST_RETENTION_DAYS <= number <= MAXIMUM_RETENTION_DAYS:
            numbers[name] = number
        else:
            expected = f"{LEAST_RETENTION_DAYS} to {MAXIMUM_RETENTION_DAYS} days"
            faults.add(expected, number, content.path(name))
    days = numbers.get("days", otherwise.days)
    # Terms that name days alone move the bounds along, so that the days are within them.
    least = numbers.get("least", min(otherwise.least, days))
    most = numbers.get("most", days if "days" in numbers else otherwise.most)
    if not least <= days <= most:
        faults.add("days from least to most", f"{least}, {days}, {most}", content.path("days"))
    return Term(days, least, most)
