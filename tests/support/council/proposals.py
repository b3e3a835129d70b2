"""A council of three owners, on paper: its files, its keys, and proposals for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eth_utils.address import to_checksum_address

from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.council.calls import Call, expected_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.proposal import Council, Evidence, Fees, Grounds, Proposal, SafeSettings
from chainkit.council.safe import known_contracts
from chainkit.council.signing import KeySigner
from chainkit.signatures import SigningKey, address_of


def _deployed(name: str, byte: int) -> DeployedContract:
    return DeployedContract(name, bytes([byte]) * 20, 1, bytes(32))


RECORD = DeploymentRecord(
    31337,
    bytes(32),
    _deployed("GroupMessages", 0x11),
    _deployed("IdentityUpdates", 0x22),
    _deployed("NodeRegistry", 0x33),
    _deployed("OriginatorSequence", 0x44),
    deployer=bytes(20),
)
SECRETS = [number.to_bytes(32, "big") for number in (1, 2, 3)]
OWNERS = [address_of(SigningKey(secret).public_key) for secret in SECRETS]
STRANGER = (4).to_bytes(32, "big")
NAMES = ("alice", "bob", "carol")

MULTI_SEND = known_contracts()["MultiSendCallOnly", "1.4.1"].address
assert MULTI_SEND is not None

SAFE = Council(
    chain_id=31337,
    account=b"\x5a" * 20,
    safe=SafeSettings("1.4.1", MULTI_SEND),
    names=dict(zip(OWNERS, NAMES, strict=True)),
)
PLAIN = Council(31337, bytes.fromhex(OWNERS[0][2:]), None, {})
FEES = Fees(100_000, 2 * 10**9, 10**9)
EXPIRES = 4_000_000_000


def disable(node_id: int = 300) -> Call:
    return Call.make(RECORD, "NodeRegistry", "updateHealth", node_id, False)


def pause(contract: str = "GroupMessages") -> Call:
    return Call.make(RECORD, contract, "pause")


def transfer(holder: str, successor: str, node_id: int = 300) -> Call:
    return Call.make(RECORD, "NodeRegistry", "transferFrom", holder, successor, node_id)


def change_threshold(threshold: int = 3) -> Call:
    return Call.make_of_safe(SAFE.account, "changeThreshold", threshold)


def before(call: Call) -> dict[str, str]:
    """Return facts of a chain on which a call of this module changes something."""
    facts = {
        "updateHealth": lambda: {f"node {call.arguments['tokenId']} status": "enabled"},
        "transferFrom": lambda: {
            f"node {call.arguments['tokenId']} holder": call.arguments["from"]
        },
        "pause": lambda: {f"{call.contract} paused": "no"},
        "changeThreshold": lambda: {
            "Safe owners": ", ".join(sorted(OWNERS)),
            "Safe signatures needed": "2",
        },
    }
    return facts[call.function]()


def grounds(*calls: Call, **changes: Any) -> Grounds:
    calls = calls or (disable(),)
    facts = {name: value for call in calls for name, value in before(call).items()}
    base = Grounds(
        reason="node 300 served what the chain does not hold",
        evidence=(Evidence("node-300", "ab" * 32),),
        before=facts,
        after=expected_change(EFFECTS, RECORD, calls, facts).after,
        runs={name: checksummed(b"\x55" * 20) for name in _proxies(calls)},
        expires=EXPIRES,
    )
    return replace(base, **changes)


def _proxies(calls: Sequence[Call]) -> list[str]:
    return sorted({call.contract for call in calls}.intersection(SEQUENCED_LOGS))


def proposed(*calls: Call, council: Council = SAFE, nonce: int = 0, **changes: Any) -> Proposal:
    calls, fees = calls or (disable(),), None if council.safe else FEES
    return Proposal.make(RECORD, council, calls, grounds(*calls, **changes), nonce, fees)


def signer(number: int) -> KeySigner:
    return KeySigner("key", SECRETS[number])


def checksummed(address: bytes) -> str:
    return to_checksum_address(address)
