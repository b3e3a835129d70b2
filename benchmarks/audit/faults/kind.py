"""A kind of fault: a few payloads in succession, what a node serves, what must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from benchmarks.audit.faults.wire import Payload, signed, unsigned
from chainkit.signatures import SigningKey
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.findings import Code

BY_SIGNATURE: Final = frozenset({Code.SIGNATURE_INVALID})
"""Codes that only an audit gives which checks signatures."""


class Found(NamedTuple):
    """A finding about a node, as far as it says what and where."""

    code: str
    originator_id: int
    sequence_id: int


class Served(NamedTuple):
    """A row of a node's export."""

    envelope: bytes
    claimed_sequence_id: int
    """The sequence in the table's own column, beside the envelope."""
    payload: int = 0
    """Which payload of the window its other columns speak of."""


@dataclass(frozen=True, slots=True)
class Window:
    """Payloads in succession, and who serves them."""

    payloads: tuple[Payload, ...]
    key: SigningKey
    """The node's."""
    other_key: SigningKey
    """Another registered node's."""
    counter: int
    """The last sequence that the contracts gave out."""

    def honest(self, index: int = 0) -> Served:
        """Return what the node must serve for a payload."""
        return self.signed(unsigned(self.payloads[index]), index)

    def signed(self, unsigned_bytes: bytes, index: int = 0) -> Served:
        """Return what the node vouches for in a payload's stead."""
        payload = self.payloads[index]
        return self.raw(signed(self.key, unsigned_bytes, payload.transaction_hash), index)

    def raw(self, envelope: bytes, index: int = 0) -> Served:
        """Return any bytes in a payload's stead."""
        return Served(envelope, self.payloads[index].sequence_id, index)


class Place(StrEnum):
    """Where a kind can stand."""

    ANYWHERE = "anywhere"
    FIRST = "first"
    """On the first payload of all."""
    LAST = "last"
    """On the last one."""
    QUARANTINED = "quarantined"
    """On a malformed payload, which nobody may serve."""


Expected = tuple[Code, int] | tuple[Code, Callable[[Window], tuple[int, int]]]
"""A code, and which payload of the window it is about, or originator and sequence."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A change to a node's rows, and the findings that it must give: these and no others."""

    name: str
    changes: str
    """In words."""
    serve: Callable[[Window], list[Served]]
    expected: tuple[Expected, ...] = ()
    """Nothing where the node is innocent."""
    width: int = 1
    """How many payloads in succession take part."""
    place: Place = Place.ANYWHERE
    is_alone: bool = False
    """Whether a second one at the same node would give other findings than the first."""

    def findings(self, window: Window) -> list[Found]:
        """Return what an audit that checks signatures must find."""
        return [
            Found(
                code,
                *(
                    where(window)
                    if callable(where)
                    else (BLOCKCHAIN_ORIGINATOR_ID, window.payloads[where].sequence_id)
                ),
            )
            for code, where in self.expected
        ]
