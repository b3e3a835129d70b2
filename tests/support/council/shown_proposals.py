"""A proposal's file, hashed and put in words by another hand than the package's.

The hashes follow EIP-712 and MultiSend by eth_abi, keccak and rlp alone; the words are those that a
screen must have, each between blanks. Nothing of the package is used but keccak and the address of
a key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import eth_abi
import rlp
from eth_utils.address import to_checksum_address

from chainkit.signatures import address_of, keccak256
from support.council.proposals import MULTI_SEND, NAMES, OWNERS, RECORD, SAFE

Content = dict[str, Any]

_FUNCTIONS: Final = {
    "addNode": ("address to", "bytes signingKeyPub", "string httpAddress"),
    "updateHealth": ("uint256 tokenId", "bool isHealthy"),
    "transferFrom": ("address from", "address to", "uint256 tokenId"),
    "setHttpAddressUpdatesOpen": ("bool open",),
    "updateHttpAddress": ("uint256 tokenId", "string httpAddress"),
    "transferOwnership": ("address newOwner",),
    "acceptOwnership": (),
    "pause": (),
    "unpause": (),
    "grantRole": ("bytes32 role", "address account"),
    "revokeRole": ("bytes32 role", "address account"),
    "setPayloadBounds": ("uint32 minPayloadSize", "uint32 maxPayloadSize"),
    "upgradeToAndCall": ("address newImplementation", "bytes data"),
    "addOwnerWithThreshold": ("address owner", "uint256 _threshold"),
    "removeOwner": ("address prevOwner", "address owner", "uint256 _threshold"),
    "swapOwner": ("address prevOwner", "address oldOwner", "address newOwner"),
    "changeThreshold": ("uint256 _threshold",),
}
_SAFE_TX: Final = (
    "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,"
    "uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)"
)
_DOMAIN: Final = "EIP712Domain(uint256 chainId,address verifyingContract)"
_CONTRACTS: Final = {each.address: each.name for each in RECORD.contracts}
_ACCOUNT: Final = {SAFE.address: "the council's Safe", OWNERS[0]: "the council's account"}
_NOT_CHECKED: Final = (
    "not checked reason, evidence and the state before, with what follows from it, are its "
    "drafter's words; 'chainkit council status' asks the chain"
)


# --------------------------------------------------------------------- the hashes


def file_hashes(content: Content) -> dict[str, bytes]:
    """Return the hashes of a file's calls, by the names under which the file has them."""
    digest = _grounds_digest(content["grounds"])
    expires = content["grounds"]["expires"].to_bytes(8, "big")
    calls = [_pair(each) for each in content["calls"]]
    target, data = calls[-1]
    calls[-1] = (target, data + b"XIP-49/1" + expires + digest)
    if content["fees"] is not None:
        return {"grounds": digest, "transaction": _account_hash(content, *calls[-1])}
    operation = 0 if len(calls) == 1 else 1
    to, data = calls[0] if len(calls) == 1 else (MULTI_SEND, _batch(calls))
    assert to is not None
    message = keccak256(
        keccak256(_SAFE_TX.encode())
        + eth_abi.encode(
            ["address", "uint256", "bytes32", "uint8", *["uint256"] * 3, *["address"] * 2],
            [to, 0, keccak256(data), operation, 0, 0, 0, bytes(20), bytes(20)],
        )
        + eth_abi.encode(["uint256"], [content["nonce"]])
    )
    place = [content["chain_id"], content["account"]]
    domain = keccak256(keccak256(_DOMAIN.encode()) + eth_abi.encode(["uint256", "address"], place))
    found = {"domain": domain, "message": message}
    return {"grounds": digest, **found, "safe_tx": keccak256(b"\x19\x01" + domain + message)}


def signed_hash(content: Content) -> bytes:
    """Return the hash that a signature of the file is over."""
    *_, last = file_hashes(content).values()
    return last


def _grounds_digest(grounds: Content) -> bytes:
    line = json.dumps(grounds, sort_keys=True, separators=(",", ":")) + "\n"
    return hashlib.sha256(line.encode()).digest()


def _pair(call: Content) -> tuple[bytes, bytes]:
    return bytes.fromhex(call["target"][2:]), bytes.fromhex(call["calldata"][2:])


def _batch(calls: list[tuple[bytes, bytes]]) -> bytes:
    packed = b"".join(
        b"\0" + target + bytes(32) + len(data).to_bytes(32, "big") + data for target, data in calls
    )
    return keccak256(b"multiSend(bytes)")[:4] + eth_abi.encode(["bytes"], [packed])


def _account_hash(content: Content, target: bytes, data: bytes) -> bytes:
    fees = content["fees"]
    amounts = [int(fees[f"max_{name}fee_per_gas"]) for name in ("priority_", "")]
    head = [content["chain_id"], content["nonce"], *amounts, int(fees["gas"])]
    return keccak256(b"\x02" + rlp.encode([*head, target, 0, data, []]))


# ---------------------------------------------------------------------- the words


def words_of(content: Content) -> str:
    """Return what a screen must say of a file, without cautions, summary and strangers' texts."""
    return " ".join(" ".join(_words(content)).split())


def texts_of(content: Content) -> list[str]:
    """Return the strangers' texts that a screen must quote, in its order."""
    urls = [
        value for call in content["calls"] for kind, _, value in _decoded(call) if kind == "string"
    ]
    grounds = content["grounds"]
    old_urls = [
        text
        for name, text in sorted(grounds["before"].items())
        if name.endswith("http address") and text != "(none)"
    ]
    return [*urls, *old_urls, grounds["reason"], *(each["name"] for each in grounds["evidence"])]


def _words(content: Content) -> Iterator[str]:
    calls, grounds = content["calls"], content["grounds"]
    is_plain, count = content["fees"] is not None, len(calls)
    account = content["account"]
    yield f"account {account} ({_ACCOUNT[account]})"
    yield f"chain id {content['chain_id']}, nonce {content['nonce']}"
    if calls[0]["target"].lower() == SAFE.address.lower():
        yield "THIS CHANGES THE SAFE ITSELF: who owns it, or how many must sign"
    for number, call in enumerate(calls, start=1):
        yield "call" if count == 1 else f"call {number} of {count}"
        yield from _call_words(call, is_plain)
    if count > 1:
        assert MULTI_SEND is not None
        yield f"through a delegatecall of {_address(to_checksum_address(MULTI_SEND), is_plain)}"
    after = dict(pair for call in calls for pair in _after(call, grounds["before"]).items())
    for name in sorted(after):
        yield f"changes {name}: {_change(name, grounds['before'][name], after[name], is_plain)}"
    for contract, address in sorted(grounds["runs"].items()):
        yield f"while {contract} runs the code at {address}"
    yield "reason"
    yield from (f"evidence sha256 {each['sha256']}" for each in grounds["evidence"])
    yield f"expires {_moment(grounds['expires'])}"
    if is_plain:
        gas, price = (int(content["fees"][name]) for name in ("gas", "max_fee_per_gas"))
        wei = gas * price
        yield f"costs at most {_ether(wei)} ether ({wei:,} wei) for {gas:,} gas"
    for name, value in file_hashes(content).items():
        label = {"safe_tx": "SafeTx hash", "domain": "domain hash", "message": "message hash"}
        yield f"{label.get(name, name)} 0x{value.hex()}"
    yield _NOT_CHECKED
    for call in calls:
        if _function(call)[0] == "upgradeToAndCall":
            code = _arguments(call)["newImplementation"]
            yield f"nobody looked at the code at {code}: 'status' compares it"
    signers = content["signatures"]
    yield from (f"signed by {_address(each, is_plain)}" for each in sorted(signers))
    if not signers:
        yield "signed by nobody yet"


def _call_words(call: Content, is_plain: bool) -> Iterator[str]:
    target = to_checksum_address(call["target"])
    contract = _CONTRACTS.get(bytes.fromhex(target[2:]), "Safe")
    yield f"{contract}.{_function(call)[0]} at {target}"
    for kind, name, value in _decoded(call):
        if kind == "address":
            yield f"{name} {_address(value, is_plain)}"
        elif name == "role" and not any(value):
            yield "role DEFAULT_ADMIN_ROLE"
        elif isinstance(value, bytes):
            yield f"{name} 0x{value.hex()}"
        else:
            yield f"{name} {'' if kind == 'string' else str(value).lower()}"


def _function(call: Content) -> tuple[str, tuple[str, ...]]:
    selector = call["calldata"][:10]
    for name, fields in _FUNCTIONS.items():
        types = ",".join(field.split()[0] for field in fields)
        if "0x" + keccak256(f"{name}({types})".encode())[:4].hex() == selector:
            return name, fields
    raise AssertionError(f"a call of another function is shown: {selector}")


def _decoded(call: Content) -> Iterator[tuple[str, str, Any]]:
    """Yield type, name and value of each argument."""
    fields = [field.split() for field in _function(call)[1]]
    data = bytes.fromhex(call["calldata"][10:])
    for (kind, name), value in zip(
        fields, eth_abi.decode([f[0] for f in fields], data), strict=True
    ):
        yield kind, name, to_checksum_address(value) if kind == "address" else value


def _arguments(call: Content) -> dict[str, Any]:
    return {name: value for _, name, value in _decoded(call)}


def _address(address: str, is_plain: bool) -> str:
    """Return an address as the reader's own files name it."""
    names = {to_checksum_address(place): name for place, name in _CONTRACTS.items()}
    if is_plain:
        names[OWNERS[0]] = _ACCOUNT[OWNERS[0]]
    else:
        assert MULTI_SEND is not None
        names |= dict(zip(OWNERS, NAMES, strict=True))
        names |= {SAFE.address: _ACCOUNT[SAFE.address]}
        names[to_checksum_address(MULTI_SEND)] = "MultiSendCallOnly"
    return f"{address} ({names.get(address, 'not in your council file')})"


def _after(call: Content, before: Mapping[str, str]) -> dict[str, str]:
    """Return what the facts are once a call is made, as the contracts' own texts have it."""
    function, arguments = _function(call)[0], _arguments(call)
    contract = _CONTRACTS.get(bytes.fromhex(call["target"][2:]), "Safe")
    node = f"node {arguments.get('tokenId')}"
    found: Mapping[str, Callable[[], dict[str, str]]] = {
        "addNode": lambda: _new_node(arguments),
        "updateHealth": lambda: {
            f"{node} status": "enabled" if arguments["isHealthy"] else "disabled"
        },
        "transferFrom": lambda: {f"{node} holder": arguments["to"]},
        "setHttpAddressUpdatesOpen": lambda: {
            "NodeRegistry operators' address updates": "open" if arguments["open"] else "closed"
        },
        "updateHttpAddress": lambda: {f"{node} http address": arguments["httpAddress"]},
        "transferOwnership": lambda: {
            "NodeRegistry owner": before["NodeRegistry owner"],
            "NodeRegistry pending owner": _account(arguments["newOwner"]),
        },
        "acceptOwnership": lambda: {
            "NodeRegistry owner": before["NodeRegistry pending owner"],
            "NodeRegistry pending owner": "(none)",
        },
        "pause": lambda: {f"{contract} paused": "yes"},
        "unpause": lambda: {f"{contract} paused": "no"},
        "grantRole": lambda: _list(before, f"{contract} administrators", add=arguments["account"]),
        "revokeRole": lambda: _list(before, f"{contract} administrators", arguments["account"]),
        "setPayloadBounds": lambda: {
            f"{contract} payload bounds": (
                f"{arguments['minPayloadSize']} to {arguments['maxPayloadSize']} bytes"
            )
        },
        "upgradeToAndCall": lambda: {
            f"{contract} implementation": arguments["newImplementation"],
            f"{contract} sequence": before[f"{contract} sequence"],
        },
    }
    return found.get(function, lambda: _owners(function, arguments, before))()


def _new_node(arguments: Mapping[str, Any]) -> dict[str, str]:
    subject = f"node of key {address_of(arguments['signingKeyPub'])}"
    url = arguments["httpAddress"]
    return {
        f"{subject} status": "enabled",
        f"{subject} holder": arguments["to"],
        f"{subject} http address": url,
    }


def _account(address: str) -> str:
    return address if int(address, 16) else "(none)"


def _list(before: Mapping[str, str], name: str, remove: str = "", add: str = "") -> dict[str, str]:
    found = {*before[name].split(", "), add} - {remove, ""}
    return {name: ", ".join(sorted(found))}


def _owners(
    function: str, arguments: Mapping[str, Any], before: Mapping[str, str]
) -> dict[str, str]:
    removed = arguments.get("owner" if function == "removeOwner" else "oldOwner", "")
    added = arguments.get("owner" if function == "addOwnerWithThreshold" else "newOwner", "")
    needed = arguments.get("_threshold", before["Safe signatures needed"])
    return {
        **_list(before, "Safe owners", removed, added),
        "Safe signatures needed": str(needed),
    }


def _change(name: str, before: str, after: str, is_plain: bool) -> str:
    if name.endswith("http address"):
        old = before if before == "(none)" else "as below"
        return f"{old} -> the httpAddress of the call"
    old, new = (
        ", ".join(_named(part, is_plain) for part in text.split(", ")) for text in (before, after)
    )
    return f"{old} -> {new}" if before != after else f"{new}, as before"


def _named(text: str, is_plain: bool) -> str:
    address, _, rest = text.partition(" ")
    if not address.startswith("0x"):
        return text
    return f"{_address(address, is_plain)} {rest}".strip()


def _moment(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s after 1970"


def _ether(wei: int) -> str:
    whole, rest = divmod(wei, 10**18)
    return f"{whole}.{rest:018}".rstrip("0").rstrip(".")
