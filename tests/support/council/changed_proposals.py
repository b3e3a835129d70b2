"""Every leaf of a proposal's file changed, one at a time, and sealed as a forger could seal it.

A forger knows the format: the forger encodes the calls again, writes the facts that follow, and
computes all hashes, but lacks the owners' keys.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from eth_abi.exceptions import EncodingError
from eth_utils.address import to_checksum_address

from chainkit.contracts.interface import shipped_interface
from chainkit.council.calls import SAFE as OF_SAFE
from chainkit.council.calls import Call, expected_change
from chainkit.council.calls.effect import NONE
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.proposal import Council, Grounds, Proposal, proposal_content, sign_proposal
from chainkit.council.safe import recover_owner
from chainkit.council.signing import recover_signer
from chainkit.documents.canonical import page_bytes
from chainkit.errors import ChainkitError
from chainkit.signatures import address_of
from support.council.fake_registry import HOLDER, node_key
from support.council.proposals import (
    EXPIRES,
    FEES,
    OWNERS,
    PLAIN,
    RECORD,
    SAFE,
    checksummed,
    grounds,
    signer,
)
from support.council.shown_proposals import file_hashes

MARKER: Final = "decafbad" * 2
"""Part of each hostile text, and of nothing else: it marks the lines of a screen with such a
text."""

STRANGER: Final = checksummed(b"\x66" * 20)
_OLD: Final = checksummed(b"\x55" * 20)
_SEQUENCE: Final = checksummed(RECORD.originator_sequence.address)
_LIST_END: Final = "0x" + "1".zfill(40)
_FALSE_LINE: Final = f"SafeTx hash     0x{MARKER * 4}"

_ALIKE: Final = (
    ("pause", "unpause"),
    ("grantRole", "revokeRole"),
    ("GroupMessages", "IdentityUpdates"),
    ("enabled", "disabled"),
    ("yes", "no"),
    ("open", "closed"),
)
"""Words in whose place another one could stand."""

_UNSEALABLE: Final = (
    ChainkitError,
    EncodingError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Errors of a change that leaves nothing to be sealed."""

Content = dict[str, Any]
Path = tuple[Any, ...]


# ------------------------------------------------------------------ the proposals


def _registry(function: str, *arguments: Any) -> Call:
    return Call.make(RECORD, "NodeRegistry", function, *arguments)


def _log(function: str, *arguments: Any, contract: str = "GroupMessages") -> Call:
    return Call.make(RECORD, contract, function, *arguments)


def _of_safe(function: str, *arguments: Any) -> Call:
    return Call.make_of_safe(SAFE.account, function, *arguments)


def _calls() -> dict[str, tuple[Call, ...]]:
    disable = _registry("updateHealth", 300, False)
    grant = _log("grantRole", bytes(32), STRANGER)
    url = "https://node.example/one"
    return {
        "disable": (disable,),
        "enable": (_registry("updateHealth", 300, True),),
        "add": (_registry("addNode", HOLDER, node_key(1).public_key, url),),
        "transfer": (_registry("transferFrom", OWNERS[0], OWNERS[1], 300),),
        "url": (_registry("updateHttpAddress", 300, f"{url}/new"),),
        "open updates": (_registry("setHttpAddressUpdatesOpen", True),),
        "offer": (_registry("transferOwnership", OWNERS[1]),),
        "accept": (_registry("acceptOwnership"),),
        "pause": (_log("pause"),),
        "unpause": (_log("unpause", contract="IdentityUpdates"),),
        "grant": (grant,),
        "revoke": (_log("revokeRole", bytes(32), OWNERS[0]),),
        "bounds": (_log("setPayloadBounds", 1, 100_000),),
        "upgrade": (_log("upgradeToAndCall", STRANGER, b""),),
        "add owner": (_of_safe("addOwnerWithThreshold", STRANGER, 2),),
        "remove owner": (_of_safe("removeOwner", _LIST_END, OWNERS[0], 1),),
        "swap owner": (_of_safe("swapOwner", _LIST_END, OWNERS[0], STRANGER),),
        "threshold": (_of_safe("changeThreshold", 3),),
        "batch": (disable, _log("pause"), grant),
        "plain": (disable,),
    }


KINDS: Final = tuple(_calls())

_WHOLE: Final = ("add", "batch", "plain", "threshold")
_FACTS: Final = (("before",), ("after",), ("runs",))
"""The other kinds have only these and the calls changed: all else is the same in each."""


def council_of(kind: str) -> Council:
    return PLAIN if kind == "plain" else SAFE


@cache
def original(kind: str) -> Proposal:
    """Return a real proposal of a kind, signed by the first owner."""
    calls, council = _calls()[kind], council_of(kind)
    before = {name: value for call in calls for name, value in _before(call).items()}
    said = grounds(
        before=before,
        after=expected_change(EFFECTS, RECORD, calls, before).after,
        runs=_runs(calls),
    )
    fees = None if council.safe else FEES
    proposal = Proposal.make(RECORD, council, calls, said, 7, fees)
    return sign_proposal(proposal, council, signer(0))


def _before(call: Call) -> dict[str, str]:
    """Return the facts of a chain on which the call changes something."""
    name, arguments = call.contract, call.arguments
    owners = {"Safe owners": ", ".join(sorted(OWNERS)), "Safe signatures needed": "2"}
    node = f"node {arguments.get('tokenId')}"
    facts: Mapping[str, Callable[[], dict[str, str]]] = {
        "updateHealth": lambda: {
            f"{node} status": "disabled" if arguments["isHealthy"] else "enabled"
        },
        "addNode": lambda: {
            f"node of key {address_of(arguments['signingKeyPub'])} {fact}": NONE
            for fact in ("status", "holder", "http address")
        },
        "transferFrom": lambda: {f"{node} holder": arguments["from"]},
        "setHttpAddressUpdatesOpen": lambda: {
            "NodeRegistry operators' address updates": "closed" if arguments["open"] else "open"
        },
        "updateHttpAddress": lambda: {f"{node} http address": "https://node.example/old"},
        "transferOwnership": lambda: {
            "NodeRegistry owner": SAFE.address,
            "NodeRegistry pending owner": NONE,
        },
        "acceptOwnership": lambda: {
            "NodeRegistry owner": OWNERS[0],
            "NodeRegistry pending owner": SAFE.address,
        },
        "pause": lambda: {f"{name} paused": "no"},
        "unpause": lambda: {f"{name} paused": "yes"},
        "grantRole": lambda: {f"{name} administrators": SAFE.address},
        "revokeRole": lambda: {
            f"{name} administrators": ", ".join(sorted({SAFE.address, arguments["account"]}))
        },
        "setPayloadBounds": lambda: {f"{name} payload bounds": "78 to 4194304 bytes"},
        "upgradeToAndCall": lambda: {
            f"{name} implementation": f"{_OLD} (release 0.1.0)",
            f"{name} sequence": _SEQUENCE,
        },
    }
    return facts.get(call.function, lambda: owners)()


def _runs(calls: tuple[Call, ...] | list[Call]) -> dict[str, str]:
    return {call.contract: _OLD for call in calls if call.contract not in ("NodeRegistry", OF_SAFE)}


# -------------------------------------------------------------------- the changes


def changes(content: Content) -> Iterator[tuple[Path, Content]]:
    """Yield the content with one place changed, and the place; each place, each way."""
    for path in _places(content):
        value = _at(content, path)
        for other in _others(value):
            if other != value or type(other) is not type(value):
                yield path, _with(content, path, other)
        if not isinstance(path[-1], int):
            yield path, _without(content, path)
            yield path, _renamed(content, path)


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield each field and element, with those that have others within."""
    if path:
        yield path
    if isinstance(value, dict):
        for name in value:
            yield from _places(value[name], (*path, name))
    elif isinstance(value, list):
        for number in range(len(value)):
            yield from _places(value[number], (*path, number))


def _others(value: Any) -> list[Any]:
    """Return other values of the same type, and of each other type."""
    other_types: list[Any] = [None, True, 7, "7", [], {}]
    if isinstance(value, str):
        return [*_other_texts(value), *other_types]
    if isinstance(value, bool):
        return [not value, *other_types]
    if isinstance(value, int):
        return [value + 1, 0, -1, 2**63, 2**256, float(value), str(value), *other_types]
    if isinstance(value, list) and value:
        return [value[::-1], value[1:], [*value, value[0]], *other_types]
    if isinstance(value, dict):
        return [value | {"one more": "x"}, *other_types]
    return other_types


def _other_texts(value: str) -> list[str]:
    last = "1" if value[-1:] != "1" else "2"
    numbers = [str(int(value) + 1), f"0{value}", f"{value}0"] if value.isdecimal() else []
    hostile = [
        _FALSE_LINE,
        f"{value}{' ' * 60}{_FALSE_LINE}",
        f"{value}\n{_FALSE_LINE}",
        f"{value}\r\x1b[2K{_FALSE_LINE}",
        f"{value[:-1]}{' ' * 60}safetx hash {MARKER}{value[-1:]}",
        f"\u202e{MARKER}{value}",
        f"{value} \u0430{MARKER}",
        f'" {MARKER} "\\',
        f'{value}"{"x" * 60}SafeTx-hash--0x{MARKER}',
        f"{value} {'word ' * 60}{MARKER}",
    ]
    return [
        *(other for pair in _ALIKE if value in pair for other in pair),
        value[:-1] + last,
        value[:-2],
        value.swapcase(),
        f"{value} ",
        "",
        STRANGER,
        OWNERS[2],
        to_checksum_address(RECORD.node_registry.address),
        "0x" + "0" * 40,
        "0x" + "ab" * 32,
        "ab" * 32,
        *numbers,
        *hostile,
    ]


def _at(content: Content, path: Path) -> Any:
    value: Any = content
    for name in path:
        value = value[name]
    return value


def _with(content: Content, path: Path, value: Any) -> Content:
    changed = copy.deepcopy(content)
    _at(changed, path[:-1])[path[-1]] = copy.deepcopy(value)
    return changed


def _without(content: Content, path: Path) -> Content:
    changed = copy.deepcopy(content)
    del _at(changed, path[:-1])[path[-1]]
    return changed


def _renamed(content: Content, path: Path) -> Content:
    changed = copy.deepcopy(content)
    fields = _at(changed, path[:-1])
    fields[f"{path[-1]}{' ' * 60}{_FALSE_LINE}{' word' * 100}"] = fields.pop(path[-1])
    return changed


# ----------------------------------------------------------------------- the seal


def sealed(content: Content, path: Path) -> Content | None:
    """Return a changed content with all that a forger computes again, None where he cannot.

    The place that ``path`` names stays as it was changed, and so do the signatures' bytes: they
    stand under the address to which they recover now.
    """
    forged = copy.deepcopy(content)
    try:
        calls = [_sealed_call(each, path[2:]) for each in forged["calls"]]
        forged["calls"] = [_call_fields(call) for call in calls]
        _seal_grounds(forged["grounds"], calls, path)
        found = file_hashes(forged)
        if path[0] != "hashes":
            forged["hashes"] = {name: "0x" + value.hex() for name, value in found.items()}
        if path[0] != "signatures":
            forged["signatures"] = dict(
                _signed_again(found, each) for each in forged["signatures"].values()
            )
        page_bytes(forged)
    except _UNSEALABLE:
        return None
    return forged


def _sealed_call(fields: Content, changed: Path) -> Call:
    """Return a call by its calldata, or by its names and arguments where one of them changed."""
    targets = {each.name: each.address for each in RECORD.contracts} | {OF_SAFE: SAFE.account}
    if changed[:1] not in (("arguments",), ("function",), ("contract",)):
        target, data = (bytes.fromhex(fields[name][2:]) for name in ("target", "calldata"))
        if target == SAFE.account:
            return Call.read_of_safe(target, data)
        return Call.read(RECORD, target, data)
    function, target = fields["function"], targets[fields["contract"]]
    interface = shipped_interface(fields["contract"])
    values = [_decoded(fields["arguments"][name]) for name in interface.inputs(function)]
    if target == SAFE.account:
        return Call.make_of_safe(target, function, *values)
    return Call.make(RECORD, fields["contract"], function, *values)


def _decoded(value: Any) -> Any:
    """Return an argument's value by its JSON, where an address is text and other bytes are hex."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, str) and value.startswith("0x") and len(value) != len(STRANGER):
        return bytes.fromhex(value[2:])
    return value


def _call_fields(call: Call) -> Content:
    """Return a call as the file has it, by the package's own writer."""
    bare = Grounds("x", (), {}, {}, {}, EXPIRES)
    proposal = Proposal((call,), bare, original("pause").transaction, None)
    fields: Content = proposal_content(proposal)["calls"][0]
    return fields


def _seal_grounds(fields: Content, calls: list[Call], path: Path) -> None:
    if path[0] == "calls":
        # Another call concerns other facts.
        fields["before"] = dict(pair for call in calls for pair in _before(call).items())
        fields["runs"] = _runs(calls)
    if path[:2] != ("grounds", "after"):
        try:
            before = dict(fields["before"])
            fields["after"] = dict(expected_change(EFFECTS, RECORD, calls, before).after)
        except (ChainkitError, AttributeError, TypeError, ValueError):
            # No chain has such facts: the forger repeats his own.
            fields["after"] = dict(fields["before"])


def _signed_again(found: Mapping[str, bytes], signature: str) -> tuple[str, str]:
    data = bytes.fromhex(signature[2:])
    if "safe_tx" in found:
        return recover_owner(found["safe_tx"], data), signature
    return recover_signer(found["transaction"], data), signature


def cases(kind: str) -> Iterator[bytes]:
    """Yield files that one changed place makes of a kind's proposal: as changed, and sealed."""
    content = json.loads(page_bytes(proposal_content(original(kind))))
    seen = {page_bytes(content)}
    for path, changed in changes(content):
        if kind not in _WHOLE and path[0] != "calls" and path[1:2] not in _FACTS:
            continue
        for each in (changed, sealed(changed, path)):
            data = None if each is None else page_bytes(each)
            if data is not None and data not in seen:
                seen.add(data)
                yield data
