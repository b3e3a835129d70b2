"""A transaction's changes, traced by an endpoint without sending the transaction.

`debug_traceCall` with the prestate tracer's difference, as geth, reth, Erigon and anvil have it:
``pre`` holds the old values of what changed, ``post`` the new values; a slot that is zero is left
out, so a cleared slot is in ``pre`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from chainkit.chain import Endpoint, parse_integer
from chainkit.errors import EndpointFault, NoTracing, RefusedRequest
from chainkit.text.hexadecimal import parse_bytes
from chainkit.text.printable import printable
from chainkit.types import ADDRESS_LENGTH, BlockReference

METHOD: Final = "debug_traceCall"

Slot = tuple[bytes, int]
"""An account's address, 20 bytes, and one of its slots."""

Words = Mapping[Slot, int]
"""Values of slots."""

AccountField = Literal["balance", "nonce", "code", "existence"]

_WORD_DIGITS: Final = 64
_NOTHING: Final[Mapping[AccountField, object]] = {"balance": 0, "nonce": 0, "code": b""}


@dataclass(frozen=True, slots=True)
class Message:
    """A call that an account would make, without value."""

    sender: bytes
    """20 bytes."""
    to: bytes
    """20 bytes."""
    data: bytes

    @property
    def request(self) -> dict[str, str]:
        """A request as ``eth_call`` takes it; without a gas price: no account needs a balance."""
        return {"from": _hex(self.sender), "to": _hex(self.to), "data": _hex(self.data)}


@dataclass(frozen=True, slots=True)
class AccountChange:
    """A change of an account outside its storage."""

    address: bytes
    """20 bytes."""
    field: AccountField
    before: object
    """Wei, a number, bytes of code, or whether the account exists."""
    after: object


@dataclass(frozen=True, slots=True)
class RawDifference:
    """A transaction's changes, in an endpoint's form."""

    storage: Mapping[Slot, tuple[int, int]] = field(default_factory=dict)
    """Before and after, never equal."""
    accounts: frozenset[AccountChange] = frozenset()

    @property
    def words(self) -> Words:
        """Values of the changed slots afterwards."""
        return {slot: after for slot, (_, after) in self.storage.items()}

    def then(self, later: RawDifference) -> RawDifference:
        """Return the changes of both, the later one made on the state after this one."""
        storage = dict(self.storage)
        for slot, (before, after) in later.storage.items():
            storage[slot] = (storage.get(slot, (before,))[0], after)
        changed = {slot: change for slot, change in storage.items() if change[0] != change[1]}
        return RawDifference(changed, self.accounts | later.accounts)


def trace_difference(
    endpoint: Endpoint, block: BlockReference, message: Message, overrides: Words
) -> RawDifference:
    """Return the changes of a message on a block's state, with slots overridden for this call only.

    Raises NoTracing where the endpoint refuses, or answers with anything but a difference, and
    InconsistentAnswer for a malformed answer, or where another block takes the block's place
    meanwhile.
    """
    tracer = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    options = tracer | ({"stateOverrides": state_overrides(overrides)} if overrides else {})
    try:
        answer = endpoint.trace_call(message.request, block, options)
    except (RefusedRequest, EndpointFault):
        # Providers sell tracing by the plan, and each refuses in another way, whatever the code.
        # That the block's state is there, the call made before has shown.
        answer = _trace_by_number(endpoint, block, message, options)
    if not isinstance(answer, dict) or not {"pre", "post"} <= answer.keys():
        raise _no_tracing(endpoint, "an answer that is no difference")
    return endpoint.parsed(METHOD, parse_difference, answer)


def parse_difference(answer: Any) -> RawDifference:
    """Build the difference from a tracer's answer. Raises KeyError, TypeError or ValueError."""
    pre, post = (_accounts(answer[side]) for side in ("pre", "post"))
    storage: dict[Slot, tuple[int, int]] = {}
    accounts: set[AccountChange] = set()
    for address in pre.keys() | post.keys():
        if address not in post:
            accounts.add(AccountChange(address, "existence", True, False))
        before, after = (side.get(address, {}) for side in (pre, post))
        old, new = (_storage(account) for account in (before, after))
        for slot in old.keys() | new.keys():
            if (change := (old.get(slot, 0), new.get(slot, 0)))[0] != change[1]:
                storage[address, slot] = change
        accounts |= _account_changes(address, before, after)
    return RawDifference(storage, frozenset(accounts))


def state_overrides(words: Words) -> dict[str, Any]:
    """Return slots in the form in which ``eth_call`` and the tracer take overrides."""
    found: dict[str, Any] = {}
    for (address, slot), word in words.items():
        account = found.setdefault(_hex(address), {"stateDiff": {}})
        account["stateDiff"][_word(slot)] = _word(word)
    return found


def _trace_by_number(
    endpoint: Endpoint, block: BlockReference, message: Message, options: Mapping[str, Any]
) -> Any:
    """Trace on a block's height, for an endpoint that takes no hash here, and prove the block."""
    _require_block(endpoint, block)
    try:
        answer = endpoint.trace_call_by_height(message.request, block, options)
    except (RefusedRequest, EndpointFault) as error:
        raise _no_tracing(endpoint, printable(str(error.got))) from error
    _require_block(endpoint, block)
    return answer


def _require_block(endpoint: Endpoint, block: BlockReference) -> None:
    found = endpoint.header(block.number).hash
    if found != block.hash:
        raise endpoint.inconsistent(f"block {block.number}", _hex(block.hash), _hex(found))


def _no_tracing(endpoint: Endpoint, got: str) -> NoTracing:
    return NoTracing(f"{METHOD} at {endpoint.name}", "the difference that a call makes", got)


def _accounts(side: Any) -> dict[bytes, Any]:
    return {parse_bytes(address, ADDRESS_LENGTH): account for address, account in side.items()}


def _storage(account: Mapping[str, Any]) -> dict[int, int]:
    slots = account.get("storage") or {}
    return {parse_integer(slot): parse_integer(word) for slot, word in slots.items()}


def _account_changes(
    address: bytes, before: Mapping[str, Any], after: Mapping[str, Any]
) -> set[AccountChange]:
    """Return the changes in ``post``; balance, nonce and code are left out where unchanged."""
    found = set()
    for name, nothing in _NOTHING.items():
        if name in after:
            old = _field(name, before[name]) if name in before else nothing
            new = _field(name, after[name])
            if old != new:
                found.add(AccountChange(address, name, old, new))
    return found


def _field(name: AccountField, value: Any) -> object:
    if name == "code":
        return parse_bytes(value)
    # geth and anvil write nonces as JSON numbers.
    return value if isinstance(value, int) else parse_integer(value)


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


def _word(value: int) -> str:
    return f"0x{value:0{_WORD_DIGITS}x}"
