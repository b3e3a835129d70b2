"""The calls of the council's account: by name where a council makes such calls, else raw.

Owners may have signed any call with other tools: it is shown as it is, and marked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import SELECTOR_LENGTH
from chainkit.council.calls import Call
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.grounds import Trailer, split_trailer
from chainkit.council.safe import Operation, SafeTransaction, decode_batch, known_contracts
from chainkit.council.safe.releases import MULTI_SEND
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.text.printable import printable

_FOREIGN: Final = "no call that a council makes"


@dataclass(frozen=True, slots=True)
class TrailCall:
    """One call, as the account made it."""

    target: bytes
    """20 bytes."""
    data: bytes
    """Without the trailer of a proposal."""
    value: int
    """Wei."""
    call: Call | None
    """The call by the package's own ABI; None if a council makes no such call."""
    remark: str
    """Why a council makes no such call; empty if it does."""

    @property
    def selector(self) -> bytes:
        """The first four bytes, or fewer where there are fewer."""
        return self.data[:SELECTOR_LENGTH]


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one transaction of the account."""

    calls: tuple[TrailCall, ...]
    trailer: Trailer | None
    """The trailer behind the last call's arguments; None where there is none of ours."""
    alarm: str = ""
    """A sentence where the account let other code act in its place; else empty."""


def calls_of(record: DeploymentRecord, council: Council, transaction: SafeTransaction) -> Calls:
    """Return what a transaction of the Safe called."""
    data, value = transaction.data, transaction.value
    if transaction.operation is Operation.CALL:
        return plain_calls(record, council, transaction.to, value, data)
    raw = TrailCall(transaction.to, data, value, None, "code that acted as the Safe itself")
    if transaction.to not in _multi_sends(council):
        return Calls((raw,), None, "the Safe ran code that is not MultiSendCallOnly's")
    try:
        inner = decode_batch(data)
    except MalformedData as error:
        return Calls(
            (replace(raw, remark=f"a batch that does not decode: {printable(str(error.got))}"),),
            None,
        )
    *others, last = inner
    rest, trailer = split_trailer(last.calldata)
    pairs = [*((each.target, each.calldata) for each in others), (last.target, rest)]
    return Calls(tuple(_read(record, council, *pair, 0) for pair in pairs), trailer)


def plain_calls(
    record: DeploymentRecord, council: Council, target: bytes, value: int, data: bytes
) -> Calls:
    """Return what a single call of the account was."""
    rest, trailer = split_trailer(data)
    return Calls((_read(record, council, target, rest, value),), trailer)


def _read(
    record: DeploymentRecord, council: Council, target: bytes, data: bytes, value: int
) -> TrailCall:
    remark = ""
    call = None
    try:
        if council.safe and target == council.account:
            call = Call.read_of_safe(target, data)
        else:
            call = Call.read(record, target, data)
    except MalformedData as error:
        remark = f"{_FOREIGN}: {printable(str(error.got))}"
    except ConfigurationError:
        remark = _FOREIGN
    if value:
        remark = f"{remark or _FOREIGN}, with {value} wei"
    return TrailCall(target, data, value, None if remark else call, remark)


def _multi_sends(council: Council) -> set[bytes]:
    known = known_contracts().items()
    found = {each.address for (name, _), each in known if name == MULTI_SEND and each.address}
    return found | ({council.safe.multi_send} if council.safe else set())
