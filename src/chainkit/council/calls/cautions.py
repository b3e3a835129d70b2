"""Warnings for the owners about a proposal's calls: lines for the top of a screen.

The calls are not refused: each may be intended. The chain itself would execute them without a
warning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.contracts.parameters import PayloadBounds
from chainkit.council.calls import forms
from chainkit.council.calls.call import OWNER_FUNCTIONS, SAFE, Call
from chainkit.council.calls.effect import Facts
from chainkit.council.calls.owner_effects import OWNERS, THRESHOLD
from chainkit.text.hosts import has_private_host

if TYPE_CHECKING:
    from chainkit.contracts.state import ContractState

USUAL_PAYLOADS: Final = (200, 8_000)
"""Bytes of identity updates and of commits, from the least to the greatest of usual size."""

LARGEST_CARRIED: Final = 418_000
"""Bytes of a payload that one transaction on Ethereum carries: 2^24 gas (EIP-7825), of which 21,000
are for the transaction and 40 for each byte that is not zero (EIP-7623); the rest is its encoding.
"""

_LAST_PRECOMPILE: Final = 0x1FF
"""Addresses up to this one are the chain's own, or reserved for it."""
_DEAD_ENDS: Final = frozenset(
    to_checksum_address(bytes.fromhex(digits))
    for digits in (
        "dead".rjust(40, "0"),
        "dead" * 10,
        "deadbeef" * 5,
        "dead" + "0" * 32 + "beef",
        "ee" * 20,
        "ff" * 20,
    )
)
"""Addresses that people burn by, or write in place of ether."""


@dataclass(frozen=True, slots=True)
class _Scene:
    """The surroundings of a call: its sender, and the state after all calls."""

    account: str
    """Checksummed: the account that acts."""
    after: Facts
    names: Collection[str] | None
    """Checksummed addresses that the reader's council file names; None where there is none."""


def call_cautions(
    calls: Sequence[Call], after: Facts, account: str, names: Collection[str] | None
) -> tuple[str, ...]:
    """Return the cautions that need no chain, a line each, safe to print.

    ``after`` are the facts once all calls are made, ``account`` acts, and ``names`` are the
    addresses that the reader's council file names; None without one.
    """
    scene = _Scene(account, after, names)
    found = (line for call in calls for line in _OF_FUNCTION[call.function](call, scene))
    return tuple(dict.fromkeys(found))


def last_nodes_cautions(calls: Sequence[Call], state: ContractState) -> tuple[str, ...]:
    """Return a caution where no node is enabled any more once the calls are made at the block."""
    disabled = disabled_nodes(calls)
    stay = any(
        call.function == "addNode" or call.arguments.get("isHealthy") is True for call in calls
    )
    if not disabled or stay:
        return ()
    registry = next(call.target for call in calls if call.function == "updateHealth")
    page = state.ask("NodeRegistry", registry, "healthyNodesPage", 0, len(disabled) + 1)
    if {node_id for node_id, _ in page} - disabled:
        return ()
    return ("no node is enabled any more once this is done",)


def contract_owners_cautions(calls: Sequence[Call], state: ContractState) -> tuple[str, ...]:
    """Return a caution for each new owner of the Safe that is a contract at the block."""
    return tuple(
        contract_caution("new owner", address)
        for call in calls
        for address in _new_owners(call)
        if state.is_contract(bytes.fromhex(address[2:]))
    )


def contract_caution(role: str, address: str) -> str:
    """Return what is to be known of an owner, new or not, that is a contract."""
    return f"{role} {address} is a contract: it approves on the chain (chainkit council approve)"


def disabled_nodes(calls: Sequence[Call]) -> set[int]:
    """Return the ids of the nodes that some calls disable."""
    return {
        call.arguments["tokenId"]
        for call in calls
        if call.function == "updateHealth" and not call.arguments["isHealthy"]
    }


def is_dead_end(address: str) -> bool:
    """Return whether nobody has a key of a checksummed address, as far as anybody knows."""
    return address in _DEAD_ENDS or int(address, 16) <= _LAST_PRECOMPILE


def _none(_call: Call, _scene: _Scene) -> Iterator[str]:
    return iter(())


def _right(role: str, address: str, scene: _Scene) -> Iterator[str]:
    yield from _dead_end(role, address)
    if scene.names is not None and address not in {*scene.names, scene.account}:
        yield f"{role} {address} is not in your council file"


def _dead_end(role: str, address: str) -> Iterator[str]:
    if is_dead_end(address):
        yield f"{role} {address} is a dead end: nobody can act for it"


def _grant(call: Call, scene: _Scene) -> Iterator[str]:
    return _right(f"new administrator of {call.contract}", call.arguments["account"], scene)


def _revoke(call: Call, scene: _Scene) -> Iterator[str]:
    if call.arguments["account"] == scene.account:
        yield f"{scene.account}, which acts here, no longer administers {call.contract}"


def _offer(call: Call, scene: _Scene) -> Iterator[str]:
    offered = call.arguments["newOwner"]
    if offered == NO_ACCOUNT:
        return
    yield f"{scene.account}, which acts here, no longer owns {call.contract} once it is accepted"
    yield from _right(f"new owner of {call.contract}", offered, scene)


def _add_node(call: Call, _scene: _Scene) -> Iterator[str]:
    yield from _dead_end("holder of the new node", call.arguments["to"])
    yield from _url("the new node's URL", call)


def _set_url(call: Call, _scene: _Scene) -> Iterator[str]:
    return _url(f"the new URL of node {call.arguments['tokenId']}", call)


def _url(name: str, call: Call) -> Iterator[str]:
    url = call.arguments["httpAddress"]
    if not url.lower().startswith("https://"):
        yield f"{name} is no https: anybody on the way can read and change answers"
    if has_private_host(url):
        yield f"{name} is loopback, link-local or private: others cannot reach it"


def _transfer(call: Call, _scene: _Scene) -> Iterator[str]:
    return _dead_end("new holder", call.arguments["to"])


def _bounds(call: Call, _scene: _Scene) -> Iterator[str]:
    bounds = PayloadBounds(call.arguments["minPayloadSize"], call.arguments["maxPayloadSize"])
    least, greatest = USUAL_PAYLOADS
    if bounds.maximum < least or bounds.minimum > greatest:
        usual = f"usual payloads have {least} to {greatest:,} bytes"
        yield f"these bounds stop all messages of {call.contract}: {usual}"
    if bounds.maximum > LARGEST_CARRIED:
        limit = f"a transaction on Ethereum carries some {LARGEST_CARRIED:,} bytes"
        yield f"payloads of {bounds.maximum:,} bytes: {limit}; another chain may carry more"


def _owners(call: Call, scene: _Scene) -> Iterator[str]:
    for address in _new_owners(call):
        yield from _right("new owner of the Safe", address, scene)
    count, threshold = len(forms.addresses(scene.after, OWNERS)), int(scene.after[THRESHOLD])
    yield from threshold_cautions(count, threshold)


def _new_owners(call: Call) -> Iterator[str]:
    if call.contract == SAFE and call.function != "removeOwner":
        names = ("owner", "newOwner")
        yield from (call.arguments[name] for name in names if name in call.arguments)


def threshold_cautions(owners: int, threshold: int) -> Iterator[str]:
    """Yield the risks of a Safe's number of owners and its threshold."""
    if threshold == owners:
        yield f"all {owners} owners must sign: one lost key, and nobody can act any more"
    if threshold == 1:
        yield "one owner alone can do everything"


_OF_FUNCTION: Final[Mapping[str, Callable[[Call, _Scene], Iterator[str]]]] = {
    "addNode": _add_node,
    "updateHealth": _none,
    "transferFrom": _transfer,
    "setHttpAddressUpdatesOpen": _none,
    "updateHttpAddress": _set_url,
    "transferOwnership": _offer,
    "acceptOwnership": _none,
    "pause": _none,
    "unpause": _none,
    "grantRole": _grant,
    "revokeRole": _revoke,
    "setPayloadBounds": _bounds,
    "upgradeToAndCall": _none,
    **dict.fromkeys(OWNER_FUNCTIONS, _owners),
}
"""By the function's name, for each that a council may call."""
