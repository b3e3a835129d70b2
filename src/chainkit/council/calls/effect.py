"""The effect of a call: facts read before, facts that must be read after.

Each function that a council may call has an Effect. From it come the check that a call changes
something, the difference that is shown before anything is signed, and the proof afterwards that the
chain has become what was shown. None of it is taken from a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.calls.call import Call
from chainkit.documents.canonical import short
from chainkit.errors import ConfigurationError, MalformedData

if TYPE_CHECKING:
    from chainkit.contracts.state import ContractState

Facts = Mapping[str, str]
"""Statements of the chain, by a name that no other call's fact has; both are safe to print."""

NONE: Final = "(none)"
"""The value of a fact for a thing that does not exist yet."""


class Effect(Protocol):
    """How one function changes its contract; without state of its own."""

    def role(self, call: Call) -> str:
        """Return, in words, the role that may make the call: ``the owner of NodeRegistry``."""

    def senders(self, state: ContractState, call: Call) -> tuple[str, ...]:
        """Return the checksummed addresses that may make the call at the block."""

    def facts(self, state: ContractState, call: Call) -> Facts:
        """Read the facts that the call concerns.

        Raises ConfigurationError where the call makes no sense at this block, such as for a node
        that does not exist.
        """

    def expected(self, record: DeploymentRecord, call: Call, before: Facts) -> Facts:
        """Return the required values of the same facts after the call.

        ``before`` may hold other calls' facts too. Raises ConfigurationError for arguments that
        must never be sent, MalformedData for facts that no chain can have.
        """


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of calls made one after the other, all read at one block."""

    calls: tuple[Call, ...]
    before: Facts
    after: Facts
    """Facts of the same names as ``before``."""

    @property
    def difference(self) -> tuple[str, ...]:
        """Changes, a line each, safe to print."""
        return difference(self.before, self.after)


class _Given(dict[str, str]):
    """Facts from a file, whose author may have left one out."""

    def __missing__(self, name: str) -> str:
        raise MalformedData("facts before", name, short(", ".join(self) or "none"))


def difference(before: Facts, after: Facts) -> tuple[str, ...]:
    """Return what differs between facts of the same names, a line each, safe to print."""
    return tuple(
        f"{name}: {value} -> {after[name]}"
        for name, value in before.items()
        if value != after[name]
    )


def read_change(
    effects: Mapping[str, Effect],
    state: ContractState,
    record: DeploymentRecord,
    sender: str,
    calls: Sequence[Call],
) -> Change:
    """Read what calls by ``sender`` would change; ``effects`` are by the function's name.

    Raises ConfigurationError where the sender may not make one of them, one changes nothing, or two
    set the same fact.
    """
    before: dict[str, str] = {}
    for call in calls:
        effect = effects[call.function]
        allowed = effect.senders(state, call)
        if sender not in allowed:
            expected = f"{effect.role(call)} ({' or '.join(allowed)})"
            got = f"{sender}, which has no such role"
            raise ConfigurationError(f"sender of {call.function}", expected, got)
        before |= effect.facts(state, call)
    return expected_change(effects, record, calls, before)


def expected_change(
    effects: Mapping[str, Effect],
    record: DeploymentRecord,
    calls: Sequence[Call],
    before: Facts,
) -> Change:
    """Return what calls make of facts, without asking the chain whether these are so.

    Raises ConfigurationError where a call changes nothing, or two set the same fact, and
    MalformedData where ``before`` are not exactly the facts that the calls concern.
    """
    given, after = _Given(before), dict[str, str]()
    for call in calls:
        wanted = effects[call.function].expected(record, call, given)
        if twice := [name for name in wanted if name in after]:
            raise ConfigurationError(f"call {call}", "a fact that no other call sets", twice[0])
        if all(given[name] == value for name, value in wanted.items()):
            got = "; ".join(f"{name}: {value} already" for name, value in wanted.items())
            raise ConfigurationError(f"call {call}", "one that changes something", got)
        after |= wanted
    if others := [name for name in before if name not in after]:
        raise MalformedData("facts before", ", ".join(after), short(", ".join(others)))
    return Change(tuple(calls), dict(before), after)


def unmet(effects: Mapping[str, Effect], state: ContractState, change: Change) -> tuple[str, ...]:
    """Read the facts again and return those that differ from the result of the change."""
    found: dict[str, str] = {}
    for call in change.calls:
        found |= effects[call.function].facts(state, call)
    return tuple(
        f"{name}: expected {wanted}, got {found.get(name, NONE)}"
        for name, wanted in change.after.items()
        if found.get(name, NONE) != wanted
    )
